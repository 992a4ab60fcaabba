//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/modelbox-operator/modelbox-operator/internal/version"
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
		func(process string, most int64) {
			image := inspect(operatorImage(process))
			Expect(image.Size).To(BeNumerically("<", most))
			Expect(image.Config.User).To(Equal("65532:65532"))
			Expect(image.Config.Entrypoint).To(Equal([]string{"/" + process}))
			Expect(image.Config.Labels).To(HaveKeyWithValue("org.opencontainers.image.version", version.Version))
			Expect(image.Config.Labels).To(HaveKeyWithValue("org.opencontainers.image.title", "modelbox-"+process))
			Expect(image.Config.Labels["org.opencontainers.image.revision"]).NotTo(BeEmpty())
			Expect(run(docker, "run", "--rm", "--network=none", operatorImage(process), "--version")).To(ContainSubstring(version.Version))
		},
		Entry("webhook", "webhook", int64(65_000_000)),
		Entry("controller, with fetch-model", "controller", int64(75_000_000)),
	)

	It("have fetch-model beside the controller", func() {
		out, err := attempt("", docker, "run", "--rm", "--network=none", "--read-only", "--entrypoint=/fetch-model",
			operatorImage("controller"), "--uri=ftp://a/b", "--volume=/", "--directory=model", "--size-limit=1")
		Expect(err).To(HaveOccurred())
		Expect(out).To(ContainSubstring("[Denied] the volume is read-only"))
	})

	It("are the same when their modules come from a mirror, without a network", long, func() {
		const proxy = "GOPROXY=file:///mirror"
		removeLater("modelbox-e2e-mirror")
		// The variables of the suite's own images have no effect.
		run("make", "--no-print-directory", "-C", "..", "IMG=modelbox-e2e-mirror", "TAG=e2e", "IMG_WEBHOOK=", "IMG_CONTROLLER=", "REGISTRY=",
			"docker-build", proxy, "GOLANG_IMAGE="+golangWithMirror(), "DOCKER_BUILD_FLAGS=--network none")
		for _, process := range []string{"webhook", "controller"} {
			image := "modelbox-e2e-mirror-" + process + ":e2e"
			removeLater(image)
			Expect(inspect(image)).To(Equal(inspect(operatorImage(process))))
			Expect(run(docker, "history", "--no-trunc", image)).NotTo(ContainSubstring("GOPROXY"))
		}
	})
})

// golangWithMirror builds an image from the Go image that the operator is built from, and
// returns its name. It has the modules of go.mod and fetch/go.mod in /mirror, a folder that the go command reads
// as a proxy; an empty module cache, which is not the one that builds share; and Go's own
// setting of the checksum database, which a build without a network cannot reach.
func golangWithMirror() string {
	GinkgoHelper()
	const name = "modelbox-e2e-mirror-golang:e2e"
	cache := GinkgoT().TempDir()
	known := strings.TrimSpace(run("go", "env", "GOMODCACHE")) + "/cache/download"
	for _, module := range []string{"..", "../fetch"} {
		run("env", "GOMODCACHE="+cache, "GOFLAGS=-modcacherw", "GOPROXY=file://"+known+","+strings.TrimSpace(run("go", "env", "GOPROXY")),
			"go", "-C", module, "mod", "download")
	}
	_, err := attempt(`
FROM `+setting("GOLANG_IMAGE", "golang:1.26")+`
COPY . /mirror
ENV GOMODCACHE=/modules GOSUMDB=sum.golang.org GONOSUMDB=none GOPRIVATE=none GOFLAGS=-mod=readonly
`, docker, "build", "--quiet", "--tag", name, "--file", "-", filepath.Join(cache, "cache", "download"))
	Expect(err).NotTo(HaveOccurred())
	removeLater(name)
	return name
}

// buildCrane builds a client, and a server, of container registries.
func buildCrane() string {
	GinkgoHelper()
	return build(GinkgoT().TempDir(), "crane", "-modfile=../hack/tools/e2e/go.mod", "github.com/google/go-containerregistry/cmd/crane")
}

// build builds a program, which needs no file of the image that it runs in, and returns where
// it is.
func build(dir, name string, args ...string) string {
	GinkgoHelper()
	program := filepath.Join(dir, name)
	run(append([]string{"env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-ldflags=-s -w", "-o", program}, args...)...)
	return program
}

// serveRegistry serves an empty registry until the end of the spec, and returns its address,
// which is one that docker accepts without TLS.
func serveRegistry(ctx context.Context, crane string) string {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	server := exec.CommandContext(ctx, crane, "registry", "serve", "--address", "127.0.0.1:0")
	log := gbytes.NewBuffer()
	server.Stderr = log
	Expect(server.Start()).To(Succeed())
	DeferCleanup(func() {
		stop()
		_ = server.Wait() // It was killed.
	})
	Eventually(log).Should(gbytes.Say(`serving on port \d+`))
	return "127.0.0.1:" + regexp.MustCompile(`port (\d+)`).FindStringSubmatch(string(log.Contents()))[1]
}

// removeLater removes an image of docker at the end of the spec.
func removeLater(image string) {
	DeferCleanup(func() { run(docker, "image", "rm", image) })
}

func inspect(image string) inspected {
	GinkgoHelper()
	var found []inspected
	Expect(json.Unmarshal([]byte(run(docker, "image", "inspect", image)), &found)).To(Succeed())
	Expect(found).To(HaveLen(1))
	return found[0]
}
