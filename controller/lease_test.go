// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// Two controllers that guess different namespaces would both act.
func TestTheNamespaceOfTheLeaseIsNeverGuessed(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(podNamespace); !errors.Is(err, fs.ErrNotExist) {
		t.Skip("this test runs in a pod")
	}
	if _, err := (&options{}).newLease(&rest.Config{}); err == nil || !strings.Contains(err.Error(), "--leader-election-namespace") {
		t.Errorf("outside a pod, the error is %v", err)
	}
	lease, err := (&options{leaderNamespace: "ops"}).newLease(&rest.Config{Host: "http://localhost"})
	if err != nil {
		t.Fatal(err)
	}
	if got := lease.Describe(); got != "ops/"+electionID {
		t.Errorf("the lease is %s", got)
	}
}
