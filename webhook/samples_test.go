// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

var _ = It("config/samples is applied by one command", func() {
	folder := filepath.Join(testenv.Root(), "config", "samples")
	DeferCleanup(func() { kubectlIn("default", "", "delete", "--ignore-not-found", "-f", folder) })
	output := kubectlIn("default", "", "apply", "--validate=strict", "-f", folder)
	for _, created := range []string{
		"app.app.huolala.cn/nginx-app", "modelbox.model.github.com/modelbox-sample", "genericdaemon.mydomain.com/syslog",
		"deployment.apps/example-deployment", "uniteddeployment.extension.k8s.io/example-united-deployment",
		"deployment.apps/opsnatmonitor-v1", "eru.mtsre.meitu.com/opsnatmonitor-v1",
	} {
		Expect(output).To(ContainSubstring(created + " created\n"))
	}
	Expect(kubectlIn("default", "", "diff", "-f", folder)).To(BeEmpty())
})

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

var _ = It("the examples of docs/models.md are accepted without a warning", func() {
	page, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "models.md"))
	Expect(err).NotTo(HaveOccurred())
	namespace, created := newNamespace(), 0
	for _, example := range regexp.MustCompile(`(?m)^(    .*\n)+`).FindAllString(string(page), -1) {
		manifest := strings.ReplaceAll("\n"+example, "\n    ", "\n")
		if !strings.HasPrefix(manifest, "\napiVersion: ") {
			continue
		}
		output := kubectlIn(namespace, manifest, "create", "--dry-run=server", "--validate=strict", "-f", "-")
		Expect(output).NotTo(ContainSubstring("Warning"), manifest)
		created += strings.Count(output, "created (server dry run)")
	}
	Expect(created).To(BeNumerically(">", 20))
})
