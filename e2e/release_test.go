//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/distribution/reference"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/modelbox-operator/modelbox-operator/internal/version"
)

// dist is the folder that "make release" has written. If it is set, the suite installs its files: the
// images by digest, install.yaml and install-self-managed.yaml, the chart and the command modelbox. Else
// it installs what it builds here.
var dist = setting("E2E_DIST", "")

// loadRelease checks the files of the release, and copies its images to the nodes. No registry has
// them, so a node finds them by the name with the digest that install.yaml has.
func loadRelease() {
	GinkgoHelper()
	if dist == "" {
		return
	}
	By("loading the images of the release")
	run("sh", "-c", `cd "$1" && sha256sum --check --quiet SHA256SUMS`, "sh", dist)
	install, err := os.ReadFile(filepath.Join(dist, "install.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for _, process := range []string{"webhook", "controller"} {
		found := regexp.MustCompile(`image: (\S*modelbox-` + process + `:\S+@sha256:\S+)`).FindSubmatch(install)
		Expect(found).To(HaveLen(2))
		image, err := reference.ParseNormalizedNamed(string(found[1]))
		Expect(err).NotTo(HaveOccurred())
		archive, err := os.ReadFile(filepath.Join(dist, "modelbox-"+process+"-"+version.Version+".tar"))
		Expect(err).NotTo(HaveOccurred())
		for node := range strings.FieldsSeq(run(words(kind, "get", "nodes", "--name", clusterName)...)) {
			_, err := attempt(string(archive), docker, "exec", "-i", node,
				"ctr", "--namespace=k8s.io", "images", "import", "--digests", "--base-name="+image.Name(), "-")
			Expect(err).NotTo(HaveOccurred())
		}
	}
}

// applyInstall applies the whole install, as a user would, with the certificate of cert-manager, or
// self-managed.
func applyInstall(certs string) error {
	command := []string{"make", "--no-print-directory", "-C", "..", "deploy", "CERTS=" + certs}
	if dist != "" {
		file := map[string]string{"cert-manager": "install.yaml", "self-managed": "install-self-managed.yaml"}[certs]
		command = []string{kubectl, "apply", "-f", filepath.Join(dist, file)}
	}
	_, err := attempt("", command...)
	return err
}

// chart returns the Helm chart, and the flags with which it has the images of the suite.
func chart() (path string, flags []string) {
	GinkgoHelper()
	if dist != "" {
		return filepath.Join(dist, "modelbox-operator-"+strings.TrimPrefix(version.Version, "v")+".tgz"), nil
	}
	for _, process := range []string{"webhook", "controller"} {
		name := operatorImage(process)
		colon := strings.LastIndex(name, ":")
		flags = append(flags, "--set-string", process+".image.repository="+name[:colon], "--set-string", process+".image.tag="+name[colon+1:])
	}
	return "../charts/modelbox-operator", flags
}

// modelbox returns the command.
func modelbox() string {
	GinkgoHelper()
	if dist != "" {
		return filepath.Join(dist, strings.Join([]string{"modelbox", version.Version, runtime.GOOS, runtime.GOARCH}, "-"))
	}
	return build(GinkgoT().TempDir(), "modelbox", "../cli")
}
