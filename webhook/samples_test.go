// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

var _ = It("the worked examples of config/samples/more are accepted without a warning", func() {
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "samples", "more", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	namespace := newNamespace()
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		output := kubectlIn(namespace, string(manifest), "create", "--dry-run=server", "--validate=strict", "-f", "-")
		Expect(output).To(ContainSubstring("created (server dry run)"), file)
		Expect(output).NotTo(ContainSubstring("Warning"), file)
	}
})
