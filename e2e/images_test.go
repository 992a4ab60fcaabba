//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/modelbox-operator/modelbox-operator/version"
)

// inspected holds the fields of docker's description of an image that are checked.
type inspected struct {
	Size   int64
	RootFS struct{ Layers []string }
	Config struct {
		User       string
		Entrypoint []string
		Labels     map[string]string
	}
}

var _ = Describe("the images", func() {
	DescribeTable("are small, do not run as root, and have labels with name and version",
		func(process string) {
			image := inspect("modelbox-" + process + ":" + version.Version)
			Expect(image.Size).To(BeNumerically("<", 65_000_000))
			Expect(image.Config.User).To(Equal("65532:65532"))
			Expect(image.Config.Entrypoint).To(Equal([]string{"/" + process}))
			Expect(image.Config.Labels).To(HaveKeyWithValue("org.opencontainers.image.version", version.Version))
			Expect(image.Config.Labels).To(HaveKeyWithValue("org.opencontainers.image.title", "modelbox-"+process))
			Expect(image.Config.Labels["org.opencontainers.image.revision"]).NotTo(BeEmpty())
			Expect(run(docker, "run", "--rm", "--network=none", "modelbox-"+process+":"+version.Version, "--version")).To(ContainSubstring(version.Version))
		},
		Entry("webhook", "webhook"),
		Entry("controller", "controller"),
	)
})

func inspect(image string) inspected {
	GinkgoHelper()
	var found []inspected
	Expect(json.Unmarshal([]byte(run(docker, "image", "inspect", image)), &found)).To(Succeed())
	Expect(found).To(HaveLen(1))
	return found[0]
}
