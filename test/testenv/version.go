// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/client-go/discovery"
)

// Lacks returns why a test cannot run on the API server, if that is of a version of Kubernetes before
// 1.minor, which is the first with what the test is about, and otherwise nothing. "make
// test-versions" runs the tests on several versions.
func (e *Env) Lacks(minor int, what string) (reason string, err error) {
	c, err := discovery.NewDiscoveryClientForConfig(e.Config)
	if err != nil {
		return "", err
	}
	info, err := c.ServerVersion()
	if err != nil {
		return "", err
	}
	if have, err := strconv.Atoi(strings.TrimSuffix(info.Minor, "+")); err != nil || have >= minor {
		return "", err
	}
	return fmt.Sprintf("Kubernetes has %s since 1.%d", what, minor), nil
}
