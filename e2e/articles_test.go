//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"github.com/onsi/gomega/types"
)

// The five kinds come from articles, which show them with the commands of a kubebuilder
// project. These are the articles' commands, in order, as they are printed there; only the
// registry is another one. The images of the samples are in no registry that the cluster
// reaches, so what a command prints is checked as far as it depends on the operator.

// step is a command of an article and a part, or parts, of what it prints in the end.
type step struct {
	command string
	prints  []string
}

// article is what one article does with its kind, once the operator runs.
type article struct {
	kind  string
	steps []step
}

var articles = []article{
	{"App", []step{
		{"kubectl apply -f config/samples/app_v1_app.yaml", []string{"app.app.huolala.cn/nginx-app "}},
		{"kubectl get app.app.huolala.cn", []string{"NAME", "nginx-app", "nginx:1.16.1"}},
		{"kubectl get deployment nginx-app", []string{"/2 "}},
		{"kubectl get service nginx-app", []string{"8080"}},
	}},
	{"ModelBox", []step{
		{"kubectl apply -f config/samples/model_v1_modelbox.yaml", []string{"modelbox.model.github.com/modelbox-sample "}},
		{"kubectl get modelbox", []string{"NAME", "modelbox-sample"}},
		{"kubectl get deployment modelbox-sample", []string{"/4 "}},
		{"kubectl get service modelbox-sample", []string{"80:30010/TCP"}},
	}},
	{"Genericdaemon", []step{
		{"kubectl apply -f config/samples/mydomain_v1beta1_genericdaemon.yaml", []string{"genericdaemon.mydomain.com/syslog "}},
		{"kubectl get genericdaemon", []string{"NAME", "syslog"}},
		{"kubectl get daemonset syslog", []string{"syslog"}},
	}},
	{"UnitedDeployment", []step{
		{"kubectl apply -f config/samples/extension_v1_uniteddeployment.yaml", []string{"deployment.apps/example-deployment ", "uniteddeployment.extension.k8s.io/example-united-deployment "}},
		{"kubectl get uniteddeployment", []string{"NAME", "example-united-deployment"}},
		{"kubectl get deployment example-deployment", []string{"/2 "}},
	}},
	{"Eru", []step{
		{"kubectl apply -f config/samples/mtsre_v1_eru.yaml", []string{"deployment.apps/opsnatmonitor-v1 ", "eru.mtsre.meitu.com/opsnatmonitor-v1 "}},
		{"kubectl get eru", []string{"NAME", "opsnatmonitor-v1"}},
		{"kubectl wait --for=condition=Ready eru/opsnatmonitor-v1", []string{"condition met"}},
	}},
}

// eruOfTheArticle has the name of the field as the article prints it.
const eruOfTheArticle = `
apiVersion: mtsre.meitu.com/v1
kind: Eru
metadata:
  name: opsnatmonitor-v1
spec:
  deploymentname: opsnatmonitor-v1
  enabled: false
  schedule: "0 0 * * *"
`

var _ = Describe("the articles' commands, as printed", Serial, Ordered, removing, func() {
	BeforeAll(func() {
		DeferCleanup(func() {
			run(kubectl, "delete", "--ignore-not-found", "deployment", "example-deployment", "opsnatmonitor-v1")
		})
		removeOperator()
	})

	It("make manifests, make install", func() {
		step{"make manifests", nil}.do()
		step{"make install", []string{"apps.app.huolala.cn", "modelboxes.model.github.com"}}.do()
	})

	// The API server of kind runs in a container, whose loopback address is not this host's.
	It("make run refuses what the API server cannot reach, and leaves nothing", func() {
		before := configurations()
		out, err := try("make run")
		Expect(err).To(HaveOccurred())
		Expect(out).To(SatisfyAll(HavePrefix("using the cluster of context "), ContainSubstring("ENABLE_WEBHOOKS=false")))
		Expect(configurations()).To(Equal(before))
	})

	It("make run ENABLE_WEBHOOKS=false, and each article's sample", func() {
		before := configurations()
		running := start("make run ENABLE_WEBHOOKS=false")
		for _, a := range articles {
			a.do()
		}
		Expect(syscall.Kill(-running.Command.Process.Pid, syscall.SIGINT)).To(Succeed()) // Ctrl-C
		Eventually(running).WithTimeout(time.Minute).Should(gexec.Exit())
		Expect(configurations()).To(Equal(before))
		step{"kubectl delete -f config/samples", []string{"deleted"}}.do()
	})

	It("make docker-build docker-push, make deploy, and each article's sample", func(ctx SpecContext) {
		crane := buildCrane()
		name := serveRegistry(ctx, crane) + "/team/modelbox:article"
		img := "IMG=" + name
		step{"make docker-build docker-push " + img, nil}.do()
		removeLater(name)
		step{"docker push " + name, []string{"digest: sha256:"}}.do() // As an article about one image prints it.
		var images []string
		for _, process := range []string{"webhook", "controller"} {
			image := strings.TrimSpace(run("env", img, "../hack/images.sh", "build", process))
			removeLater(image)
			var pushed inspected
			Expect(json.Unmarshal([]byte(run(crane, "config", image)), &pushed)).To(Succeed())
			Expect(pushed.Config).To(Equal(inspect(operatorImage(process)).Config))
			images = append(images, image)
		}
		loadImages(images...) // The nodes cannot reach this host's registry.
		step{"make deploy " + img, []string{"deployment.apps/modelbox-webhook created", "deployment.apps/modelbox-controller created"}}.do()
		awaitOperator()
		for _, a := range articles {
			a.do()
		}
		step{"kubectl -n modelbox-system get pods -o jsonpath={.items[*].spec.containers[*].image}", images}.do()

		By("the Eru as the article prints it")
		out := apply("default", eruOfTheArticle)
		Expect(out).To(ContainSubstring("spec.deploymentName"))
		step{"kubectl get eru opsnatmonitor-v1 -o jsonpath={.spec.deploymentname}={.spec.deploymentName}", []string{"opsnatmonitor-v1=opsnatmonitor-v1"}}.do()
	})

	It("make undeploy, make uninstall", func() {
		stopOperator()
		step{"make undeploy", []string{"deleted"}}.do()
		step{"kubectl get eru", []string{"opsnatmonitor-v1"}}.do()
		step{"make uninstall", []string{"deleted"}}.do()
		out, err := try("kubectl get eru")
		Expect(err).To(HaveOccurred(), out)
	})

	// It is here because it needs a cluster without the operator.
	It("the tutorial, from its page", tutorial, SpecTimeout(10*time.Minute))
})

// shell returns a command as a reader of an article types it: in a clone, with the current
// kubeconfig, whose namespace is default.
func shell(ctx context.Context, line string) *exec.Cmd {
	command := exec.CommandContext(ctx, "bash", "-c", line)
	command.Dir = ".."
	command.Env = ownEnviron()
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = time.Minute
	return command
}

// ownEnviron returns the environment without what the make that runs the suite has added for a
// make below it, and without the names of the suite's images.
func ownEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, "MAKE") || name == "MFLAGS" || strings.HasPrefix(name, "IMG") || name == "TAG" || name == "REGISTRY"
	})
}

// try runs a command, and returns what it prints.
func try(line string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	out, err := shell(ctx, line).CombinedOutput()
	GinkgoWriter.Printf("$ %s\n%s", line, out)
	return string(out), err
}

// do runs a command, and expects what it prints. Those that only read are repeated until they
// print it, because the operator needs a moment.
func (s step) do() {
	GinkgoHelper()
	expected := make([]types.GomegaMatcher, 0, len(s.prints))
	for _, part := range s.prints {
		expected = append(expected, ContainSubstring(part))
	}
	attempt := func() (string, error) { return try(s.command) }
	if strings.HasPrefix(s.command, "kubectl get ") || strings.HasPrefix(s.command, "kubectl wait ") {
		Eventually(attempt).Should(SatisfyAll(expected...), s.command)
		return
	}
	out, err := attempt()
	Expect(err).NotTo(HaveOccurred(), "%s\n%s", s.command, out)
	Expect(out).To(SatisfyAll(expected...), s.command)
}

// do runs the commands of an article.
func (a article) do() {
	GinkgoHelper()
	By(a.kind)
	for _, s := range a.steps {
		s.do()
	}
}

// start starts a command that runs until it is interrupted, and returns when the operator runs.
func start(line string) *gexec.Session {
	GinkgoHelper()
	command := shell(context.Background(), line)
	session, err := gexec.Start(command, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if session.ExitCode() < 0 {
			_ = command.Cancel()
			session.Wait(time.Minute)
		}
	})
	Eventually(session.Out).WithTimeout(3 * time.Minute).Should(gbytes.Say("The operator is running"))
	return session
}

// configurations returns the names of everything that admits objects in the cluster.
func configurations() string {
	GinkgoHelper()
	return run(kubectl, "get", "-o", "name", "mutatingwebhookconfigurations,validatingwebhookconfigurations,"+
		"validatingadmissionpolicies,validatingadmissionpolicybindings")
}

// said are parts of what the blocks of docs/tutorial.md print, in their order.
var said = []string{
	"deployment.apps/modelbox-controller condition met",
	"modelbox.model.github.com/qwen condition met",
	`"text":"`,
	"modelbox.model.github.com/qwen patched",
	"ModelFetchFailed",
	`[NotFound] the commit has no file at /qwen2.5-0.5b-instruct.gguf`,
	"ModelFetchFailed", // of the command of this repository
	"modelbox.model.github.com/qwen condition met",
	`modelbox.model.github.com "qwen" deleted`,
}

// tutorial runs the commands of the page, block by block, in a cluster without the operator. The page's
// own cluster is that of the suite, and the hub is a server in it.
func tutorial(ctx SpecContext) {
	page, err := os.ReadFile("../docs/tutorial.md")
	Expect(err).NotTo(HaveOccurred())
	bin := GinkgoT().TempDir()
	Expect(os.WriteFile(filepath.Join(bin, "kind"), fmt.Appendf(nil,
		"#!/bin/sh\n[ $1 != load ] || PATH=${PATH#*:} exec %s \"$@\" --name %s\n", kind, clusterName), 0o755)).To(Succeed())
	DeferCleanup(func() {
		for _, process := range []string{"webhook", "controller"} {
			run(docker, "image", "rm", "--force", "modelbox-"+process+":tutorial")
		}
	})
	printed := ""
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindAllStringSubmatch(string(page), -1) {
		By(strings.TrimSpace(block[1]))
		out, err := try("set -eu; trap 'kill $(jobs -p) 2>/dev/null || :' EXIT; PATH=" + bin + ":$PATH\n" + block[1])
		Expect(err).NotTo(HaveOccurred(), out)
		printed += out
		if strings.Contains(block[1], "make deploy") {
			serveHub(newNamespace(ctx))
		}
	}
	for _, part := range said {
		_, after, found := strings.Cut(printed, part)
		Expect(found).To(BeTrue(), "%s\n%s", part, printed)
		printed = after
	}
}

// serveHub makes a server the hub of the operator, by a mirror, and its certificate one that the image
// of fetch-model trusts.
func serveHub(ns string) {
	GinkgoHelper()
	const fetcher = "modelbox-e2e-fetch:e2e"
	m, dir := serveModels(ns), GinkgoT().TempDir()
	cert, err := base64.StdEncoding.DecodeString(run(kubectl, "-n", ns, "get", "secret", "models-tls", "-o", `jsonpath={.data.tls\.crt}`))
	Expect(err).NotTo(HaveOccurred())
	write(filepath.Join(dir, "tls.crt"), cert)
	image(fetcher, dir, "FROM modelbox-controller:tutorial\nCOPY tls.crt /etc/ssl/certs/e2e.pem\n")
	removeLater(fetcher)
	run(words(kind, "load", "docker-image", "--name", clusterName, fetcher)...)
	run(kubectl, "-n", system, "patch", "deployment", "modelbox-controller", "--type=json", "-p", fmt.Sprintf(
		`[{"op": "add", "path": "/spec/template/spec/containers/0/args", "value": ["--fetch-image=%s", "--model-mirror=hf://=https://%s"]}]`, fetcher, m.host))
	run(kubectl, "-n", system, "rollout", "status", "deployment", "modelbox-controller", "--timeout=120s")
}
