//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// The settings of the suite. Each can be set by an environment variable, so that the
// suite can run without access to a registry.
var (
	// clusterName is the kind cluster. An existing cluster is used and kept; otherwise
	// the suite creates the cluster and deletes it.
	clusterName = setting("E2E_CLUSTER", "modelbox-e2e")
	// nodeImage is the image of its nodes; empty for kind's own choice.
	nodeImage = setting("E2E_NODE_IMAGE", "")
	// certManager is a file or URL with cert-manager's manifest, applied unless
	// cert-manager is in the cluster.
	certManager = setting("E2E_CERT_MANAGER", "https://github.com/cert-manager/cert-manager/releases/download/v1.21.2/cert-manager.yaml")
	// nginx and nginxOther are two images that serve HTTP on port 80, and busybox is one
	// with sh, sleep and wget. Images that the local docker has are loaded into the
	// cluster; others are pulled.
	nginx      = setting("E2E_NGINX_IMAGE", "nginx:1.27")
	nginxOther = setting("E2E_NGINX_OTHER_IMAGE", "nginx:1.26")
	busybox    = setting("E2E_BUSYBOX_IMAGE", "busybox:1.37")
	// docker, kind, kubectl and helm are the commands; kind may have arguments.
	docker  = setting("DOCKER", "docker")
	kind    = setting("KIND", "kind")
	kubectl = setting("KUBECTL", "kubectl")
	helm    = setting("HELM", "helm")
	// keep makes the suite delete nothing at the end.
	keep = setting("E2E_KEEP", "") != ""
)

const system = "modelbox-system"

const (
	// long is the priority of the specs that wait for a minute or more, which begin first.
	long = SpecPriority(1)
	// disturbing is the priority of the specs that restart or end processes of the operator. They
	// begin when the other parallel specs have begun, which must pass beside them.
	disturbing = SpecPriority(-1)
	// removing is the priority of the serial specs that leave the cluster without the operator.
	removing = SpecPriority(-3)
)

func setting(name, byDefault string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return byDefault
}

// operatorImage returns the image of a process. It depends on IMG and the other variables of
// hack/images.sh, which are in the environment: it is the one that "make docker-build" builds
// and that "make deploy" deploys.
func operatorImage(process string) string {
	GinkgoHelper()
	return strings.TrimSpace(run("../hack/images.sh", "build", process))
}

// applyOperator applies the whole install, with a certificate of cert-manager.
func applyOperator() error { return applyInstall("cert-manager") }

var (
	config *rest.Config
	// admin reads and writes without a cache and without a client-side rate limit.
	admin client.WithWatch
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "e2e")
}

// The first process sets up the cluster; all of them connect to it.
var _ = SynchronizedBeforeSuite(func() []byte {
	kubeconfig := filepath.Join(os.TempDir(), "modelbox-e2e-"+clusterName+".kubeconfig")
	Expect(os.Setenv("KUBECONFIG", kubeconfig)).To(Succeed())
	made := !clusterExists()
	if made {
		createCluster()
	}
	run(words(kind, "export", "kubeconfig", "--name", clusterName, "--kubeconfig", kubeconfig)...)
	models := make(chan struct{})
	go func() { // Only the specs of models need it.
		defer GinkgoRecover()
		defer close(models)
		loadImages(buildModels(), buildOllama())
	}()
	loadOperator()
	loadRelease()
	installCertManager(made)
	deploy(made)
	<-models
	return []byte(kubeconfig)
}, func(kubeconfig []byte) {
	Expect(os.Setenv("KUBECONFIG", string(kubeconfig))).To(Succeed())
	log.SetLogger(GinkgoLogr)
	format.MaxLength = 0
	SetDefaultEventuallyTimeout(4 * time.Minute)
	SetDefaultEventuallyPollingInterval(time.Second) // Most polls begin a process.
	EnforceDefaultTimeoutsWhenUsingContexts()
	connect()
})

// The state of what the operator's certificates depend on is gone when the next spec begins, and
// cert-manager says why it has not issued one only in its log and in its requests.
var _ = JustAfterEach(func() {
	if !CurrentSpecReport().Failed() {
		return
	}
	for _, args := range []string{
		"-n cert-manager get pods -o wide",
		"-n " + system + " get pods,certificates,secrets",
		"-n " + system + " get certificaterequests -o custom-columns=NAME:.metadata.name,CONDITIONS:.status.conditions[*].message",
		"-n " + system + " get events --field-selector type=Warning",
		"-n cert-manager logs deployment/cert-manager --since=5m --tail=15",
	} {
		out, _ := attempt("", append([]string{kubectl}, strings.Fields(args)...)...)
		for line := range strings.Lines(out) {
			GinkgoWriter.Print("state: ", line)
		}
	}
})

func connect() {
	GinkgoHelper()
	var err error
	config, err = clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	Expect(err).NotTo(HaveOccurred())
	config.QPS = -1
	scheme, err := testenv.Scheme()
	Expect(err).NotTo(HaveOccurred())
	admin, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
}

func clusterExists() bool {
	GinkgoHelper()
	for name := range strings.FieldsSeq(run(words(kind, "get", "clusters")...)) {
		if name == clusterName {
			return true
		}
	}
	return false
}

func createCluster() {
	GinkgoHelper()
	By("creating the kind cluster " + clusterName)
	args := words(kind, "create", "cluster", "--name", clusterName, "--config", "kind.yaml", "--wait", "180s")
	if nodeImage != "" {
		args = append(args, "--image", nodeImage)
	}
	// The cluster is removed even when its creation fails halfway.
	DeferCleanup(func() {
		if !keep {
			run(words(kind, "delete", "cluster", "--name", clusterName)...)
		}
	})
	run(args...)
}

// loadOperator loads the operator's images, which must exist, and those of the other
// images that exist locally.
func loadOperator() {
	GinkgoHelper()
	By("loading images")
	images := []string{operatorImage("webhook"), operatorImage("controller")}
	for _, image := range []string{nginx, nginxOther, busybox} {
		if _, err := attempt("", docker, "image", "inspect", image); err == nil {
			images = append(images, image)
		}
	}
	loadImages(images...)
}

// loadImages copies images from docker to the nodes.
func loadImages(images ...string) {
	GinkgoHelper()
	run(append(words(kind, "load", "docker-image", "--name", clusterName), images...)...)
}

// installCertManager installs cert-manager if it is missing. If the suite did not create
// the cluster, it uninstalls cert-manager at the end.
func installCertManager(made bool) {
	GinkgoHelper()
	if _, err := attempt("", kubectl, "get", "crd", "certificates.cert-manager.io"); err != nil {
		By("installing cert-manager")
		DeferCleanup(func() {
			if !keep && !made {
				run(kubectl, "delete", "--ignore-not-found", "--timeout=4m", "-f", certManager)
			}
		})
		run(kubectl, "apply", "--server-side", "-f", certManager)
	}
	run(kubectl, "-n", "cert-manager", "wait", "--for=condition=Available", "--timeout=180s", "deployment", "--all")
}

// deploy follows the README's steps.
func deploy(made bool) {
	GinkgoHelper()
	By("deploying the operator from config/")
	DeferCleanup(func() {
		if !keep && !made {
			run(kubectl, "delete", "--ignore-not-found", "--timeout=4m", "-k", "../config")
		}
	})
	_, missing := attempt("", kubectl, "-n", system, "get", "deployment", "modelbox-webhook", "modelbox-controller")
	// cert-manager's own webhook may need a moment until it is trusted.
	Eventually(applyOperator, 2*time.Minute, time.Second).Should(Succeed())
	if missing == nil { // Pods of an earlier deployment have images with the same names.
		run(kubectl, "-n", system, "rollout", "restart", "deployment", "modelbox-webhook", "modelbox-controller")
	}
	awaitOperator()
}

// awaitOperator waits until the rollouts of both Deployments are complete and objects
// are admitted.
func awaitOperator() {
	GinkgoHelper()
	for _, name := range []string{"modelbox-webhook", "modelbox-controller"} {
		run(kubectl, "-n", system, "rollout", "status", "deployment", name, "--timeout=240s")
	}
	Eventually(func() error {
		_, err := attempt("", kubectl, "create", "--dry-run=server", "-f", "../config/samples/model_v1_modelbox.yaml")
		return err
	}, time.Minute, time.Second).Should(Succeed(), "cert-manager must inject the root certificate")
}

// words returns a command line, for a program that may have arguments itself.
func words(program string, args ...string) []string {
	return append(strings.Fields(program), args...)
}

// run runs a command and returns its output; if the command fails, the spec fails.
func run(args ...string) string {
	GinkgoHelper()
	out, err := attempt("", args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// attempt runs a command with a text on its standard input. Its output is part of the
// error too. On a new machine some commands compile for minutes, Ollama on two busy cores for a quarter of an hour.
func attempt(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Stdin = strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
