// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Lacks returns why a test cannot run on the API server, if that is of a version of Kubernetes before
// 1.minor, which is the first with what the test is about, and otherwise nothing. "make
// test-versions" runs the tests on several versions.
func (e *Env) Lacks(minor int, what string) (reason string, err error) {
	info, err := versionOf(e.Config)
	if err != nil {
		return "", err
	}
	if have, err := minorOf(info); err != nil || have >= minor {
		return "", err
	}
	return fmt.Sprintf("Kubernetes has %s since 1.%d", what, minor), nil
}

// versionOf returns the version of an API server.
func versionOf(cfg *rest.Config) (*version.Info, error) {
	c, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return c.ServerVersion()
}

func minorOf(info *version.Info) (int, error) {
	return strconv.Atoi(strings.TrimSuffix(info.Minor, "+"))
}
