// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// config is of the API server that the examples talk to: a real one, with the
// project's CRDs. In a program it comes from clientcmd or rest.InClusterConfig.
var config *rest.Config

func TestMain(m *testing.M) {
	env, err := testenv.Start(testenv.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	config = env.Config
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
