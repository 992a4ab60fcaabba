// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// Buildable returns a *status.InvalidSpecError with the errors of a spec that leave open
// what its children have to be, nil if there are none. With any other error the children
// are built and the API server decides: a rule that is newer than a stored object must not
// stop the scaling and the repair of what runs.
func Buildable(errs field.ErrorList) error {
	if blocking := rules.Unbuildable(errs); len(blocking) > 0 {
		return &status.InvalidSpecError{Err: errors.New(status.FormatErrors(blocking))}
	}
	return nil
}
