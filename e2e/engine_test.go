//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// ollamaVersion is the one in ollamaSample.
const (
	ollamaVersion = "0.17.4"
	ollamaImage   = "ollama/ollama:" + ollamaVersion
	ollamaSample  = "../config/samples/more/ollama.yaml"
)

// buildOllama returns the image of Ollama. If docker does not have it, it is built from Ollama's
// module, without support for GPUs, and docker keeps it. The first time takes minutes.
func buildOllama() string {
	GinkgoHelper()
	if _, err := attempt("", docker, "image", "inspect", ollamaImage); err == nil {
		return ollamaImage
	}
	By("building " + ollamaImage)
	dir := GinkgoT().TempDir()
	run("env", "GOBIN="+dir, "CGO_ENABLED=1", "CPLUS_INCLUDE_PATH="+ollamaHeaders(),
		"go", "install", "-trimpath", "-tags=netgo,osusergo", "-ldflags=-s -w -extldflags=-static", "github.com/ollama/ollama@v"+ollamaVersion)
	image(ollamaImage, dir, "FROM "+busybox+"\nCOPY ollama /bin/\nENV OLLAMA_HOST=0.0.0.0:11434\nENTRYPOINT [\"/bin/ollama\"]\nCMD [\"serve\"]\n")
	return ollamaImage
}

// ollamaHeaders returns a folder with the headers that Ollama has in a folder vendor, which the archive
// of a Go module does not contain. Two other archives have them.
func ollamaHeaders() string {
	GinkgoHelper()
	dir, earlier := GinkgoT().TempDir(), moduleFolder("github.com/ollama/ollama@v0.6.5")+"/llama/llama.cpp/common/"
	for header, file := range map[string]string{
		"nlohmann/json.hpp": earlier + "json.hpp", "nlohmann/json_fwd.hpp": earlier + "json.hpp", "stb/stb_image.h": earlier + "stb_image.h",
		"miniaudio/miniaudio.h": moduleFolder("github.com/gen2brain/malgo@v0.11.24") + "/miniaudio.h",
	} {
		Expect(os.MkdirAll(filepath.Dir(filepath.Join(dir, header)), 0o755)).To(Succeed())
		Expect(os.Symlink(file, filepath.Join(dir, header))).To(Succeed())
	}
	return dir
}

// moduleFolder downloads a module, and returns the folder of its files.
func moduleFolder(module string) string {
	GinkgoHelper()
	var downloaded struct{ Dir string }
	Expect(json.Unmarshal([]byte(run("go", "mod", "download", "-json", module)), &downloaded)).To(Succeed())
	return downloaded.Dir
}

// language returns the sample, with two replicas, for a language model of the model server.
func (m models) language(file, sum string) string {
	GinkgoHelper()
	sample, err := os.ReadFile(ollamaSample)
	Expect(err).NotTo(HaveOccurred())
	model := fmt.Sprintf("uri: http://%s/%s\n    sha256: %s\n  replicas: 2", m.host, file, sum)
	return regexp.MustCompile(`uri: hf:.*`).ReplaceAllString(string(sample), model)
}

// completion is a request for an answer of the language model, whose threads are slow on a busy machine.
const completion = `{"model": "qwen", "prompt": "What is a pod?", "max_tokens": 3}`

var _ = Describe("a language model", func() {
	It("answers when it is ready, and is replaced by another one without a failed request", long, func(ctx SpecContext) {
		m := serveModels(newNamespace(ctx))
		newClient(ctx, m.ns)
		box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: m.ns, Name: "qwen"}}
		apply(m.ns, m.language("tiny-1.gguf", sumOf("tiny-1.gguf")))
		m.awaitReady("qwen")
		address := "http://" + get(ctx, box).Status.Address + "/v1/completions"
		answer, err := fetch(m.ns, address, "-T", "10", "--post-data="+completion)
		Expect(err).NotTo(HaveOccurred(), "it is ready, so the first request has an answer")
		Expect(answer).To(MatchRegexp(`"text":"[^"]*[a-z]{2}`))

		// On a busy machine an answer takes seconds. A slow one is not a failed one.
		stop := fetchRepeatedly(ctx, m.ns, address, "-T", "30", "--post-data='"+completion+"'")
		By("rolling out the second model")
		apply(m.ns, m.language("tiny-2.gguf", sumOf("tiny-2.gguf")))
		m.awaitReady("qwen")
		Expect(m.served(ctx)).To(HaveEach(ContainSubstring(sumOf("tiny-2.gguf"))))

		By("rolling out a model with another hash than its file: the second model continues to answer")
		apply(m.ns, m.language("tiny-1.gguf", strings.Repeat("a", 64)))
		Eventually(func() string { return m.readiness(ctx, "qwen") }).Should(SatisfyAll(
			HavePrefix("False "+modelFetchFailed+" "), ContainSubstring("[WrongHash]"), ContainSubstring(sumOf("tiny-1.gguf"))))

		By("returning to the first model")
		apply(m.ns, m.language("tiny-1.gguf", sumOf("tiny-1.gguf")))
		m.awaitReady("qwen")
		Expect(m.served(ctx)).To(HaveEach(ContainSubstring(sumOf("tiny-1.gguf"))))
		ok, failed := stop()
		AddReportEntry("answers during three rollouts", fmt.Sprintf("%d answered, %d failed", ok, failed), ReportEntryVisibilityAlways)
		Expect(ok).To(BeNumerically(">", 20))
		Expect(failed).To(BeZero(), "of %d requests", ok+failed)

		By("rolling out a wrong hash where the one pod is deleted first: the first model answers again, without a change by a user")
		one := strings.Replace(m.language("tiny-1.gguf", sumOf("tiny-1.gguf")), "replicas: 2",
			"replicas: 1\n  strategy: {type: Recreate}\n  onFailedRollout: Return", 1)
		apply(m.ns, one)
		m.awaitReady("qwen")
		apply(m.ns, strings.Replace(one, sumOf("tiny-1.gguf"), strings.Repeat("a", 64), 1))
		Eventually(func() string { return m.readiness(ctx, "qwen") }, "6m").Should(SatisfyAll(HavePrefix("False RolledBack "), ContainSubstring("[WrongHash]")))
		_, err = fetch(m.ns, address, "-T", "30", "--post-data="+completion)
		Expect(err).NotTo(HaveOccurred())
	}, SpecTimeout(15*time.Minute))
})

// served returns the hashes of the files in the store of Ollama of each pod.
func (m models) served(ctx context.Context) []string {
	GinkgoHelper()
	var stores []string
	for _, pod := range running(ctx, m.ns, labelsOf("qwen")) {
		stores = append(stores, run(kubectl, "-n", m.ns, "exec", pod.Name, "-c", "qwen", "--", "ls", "/root/.ollama/models/blobs"))
	}
	Expect(stores).To(HaveLen(2))
	return stores
}
