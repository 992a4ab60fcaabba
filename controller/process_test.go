// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// asProcess makes this test binary the controller process.
const asProcess = "CONTROLLER_TEST_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// runProcess starts the controller process as a user.
func runProcess(user string, flags ...string) *gexec.Session {
	GinkgoHelper()
	cfg, err := env.User(user)
	Expect(err).NotTo(HaveOccurred())
	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(writeKubeconfig(cfg, kubeconfig)).To(Succeed())
	command := processCommand(kubeconfig, flags...)
	session, err := gexec.Start(command, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { session.Kill().Wait() })
	return session
}

// processCommand returns the command of the controller process.
func processCommand(kubeconfig string, flags ...string) *exec.Cmd {
	command := exec.Command(os.Args[0], append(flags, "--kubeconfig="+kubeconfig, "--metrics-bind-address=0", "--health-probe-bind-address=0")...)
	command.Env = append(os.Environ(), asProcess+"=1")
	return command
}

func writeKubeconfig(cfg *rest.Config, path string) error {
	return clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: cfg.Host, CertificateAuthorityData: cfg.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}},
	}, path)
}

var _ = Describe("the process", func() {
	var own, user string
	BeforeEach(func() {
		own = newNamespace()
		user = testenv.ServiceAccount(own, "modelbox-controller")
	})

	It("ends on SIGTERM within its grace period, although its caches never sync", func() {
		session := runProcess(user, "--leader-election-namespace="+own)
		Eventually(func() error { return env.Refused(user) }).WithTimeout(time.Minute).ShouldNot(Succeed())
		session.Signal(syscall.SIGTERM)
		Eventually(session).WithTimeout(30 * time.Second).Should(gexec.Exit(0))
	})

	It("names each namespace if none may be listed, and fails", func() {
		session := runProcess(user, "--leader-election-namespace="+own, "--namespaces=team-a,team-b")
		Eventually(session).WithTimeout(time.Minute).Should(gexec.Exit(1))
		Expect(session.Err).To(gbytes.Say("controller: creating the manager: none of the namespaces may be listed: "))
		Expect(session.Err.Contents()).To(And(ContainSubstring(`in the namespace "team-a"`), ContainSubstring(`in the namespace "team-b"`)))
	})
})
