// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Kubeconfig returns the path of a kubeconfig of an administrator.
func (e *Env) Kubeconfig() (string, error) {
	config := filepath.Join(e.dir, "kubeconfig")
	if _, err := os.Stat(config); err == nil {
		return config, nil
	}
	return config, os.WriteFile(config, e.env.KubeConfig, 0o600)
}

// Kubectl runs kubectl as an administrator and returns its output, including its errors.
func (e *Env) Kubectl(stdin string, args ...string) (string, error) {
	config, err := e.Kubeconfig()
	if err != nil {
		return "", err
	}
	command := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), append([]string{"--kubeconfig", config}, args...)...)
	var output bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &output, &output
	if err := command.Run(); err != nil {
		return output.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, output.String())
	}
	return output.String(), nil
}
