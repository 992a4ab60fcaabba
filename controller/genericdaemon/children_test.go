// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	"testing"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/kinds/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/test/golden"
)

// Each testdata/NAME.yaml is a Genericdaemon as a user writes it;
// NAME.golden.yaml has the desired DaemonSet. "go test ./controller/... -update" writes
// the latter again.
func TestDaemonSet(t *testing.T) {
	golden.Run(t, func(daemon *mydomainv1beta1.Genericdaemon) ([]any, error) {
		daemon.UID = "6a1e2c55-0000-4000-8000-000000000000"
		genericdaemon.Default(daemon, nil, nil)
		if errs := genericdaemon.Validate(daemon); len(errs) > 0 {
			return nil, errs.ToAggregate()
		}
		set, err := daemonSet(daemon)
		return []any{set}, err
	})
}
