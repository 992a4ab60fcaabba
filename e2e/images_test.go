//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/modelbox-operator/modelbox-operator/version"
)

// inspected is what docker says of an image, as far as it is promised.
type inspected struct {
	ID, Created string
	Size        int64
	RootFS      struct{ Layers []string }
	Config      struct {
		User       string
		Entrypoint []string
		Labels     map[string]string
	}
}

var _ = Describe("the images", func() {
	DescribeTable("are small, not run by root, and say what they are",
		func(process string) {
			image := inspect("modelbox-" + process + ":" + version.Version)
			Expect(image.Size).To(BeNumerically("<", 60_000_000))
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

	DescribeTable("are the same when they are built again",
		func(process string) {
			image := "modelbox-" + process
			first := inspect(image + ":" + version.Version)
			again := image + ":e2e-again"
			args := []string{docker, "build", "--quiet", "--no-cache", "-f", "../Dockerfile." + process, "-t", again,
				"--build-arg", "VERSION=" + version.Version,
				"--build-arg", "REVISION=" + first.Config.Labels["org.opencontainers.image.revision"],
				"--build-arg", "SOURCE_DATE_EPOCH=" + strings.TrimSpace(run("git", "log", "-1", "--format=%ct"))}
			DeferCleanup(func() { run(docker, "image", "rm", again) })
			run(append(args, "..")...)
			second := inspect(again)
			Expect(second.RootFS).To(Equal(first.RootFS), "the layers, byte for byte")
			Expect(second.Config).To(Equal(first.Config))
			// Before Docker 23 an image holds the time at which it was built.
			if first.Created == second.Created {
				Expect(second.ID).To(Equal(first.ID))
			} else {
				AddReportEntry("this docker writes the time of the build into the image", ReportEntryVisibilityAlways)
			}
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
