// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"

	"github.com/modelbox-operator/modelbox-operator/test/faults"
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

// Two controllers that guess different namespaces would both act.
func TestTheNamespaceOfTheLeaseIsNeverGuessed(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(podNamespace); !errors.Is(err, fs.ErrNotExist) {
		t.Skip("this test runs in a pod")
	}
	if _, err := (&options{}).newLease(&rest.Config{}); err == nil || !strings.Contains(err.Error(), "--leader-election-namespace") {
		t.Errorf("outside a pod, the error is %v", err)
	}
	lease, err := (&options{leaderNamespace: "ops"}).newLease(&rest.Config{Host: "http://localhost"})
	if err != nil {
		t.Fatal(err)
	}
	if got := lease.Describe(); got != "ops/"+electionID {
		t.Errorf("the lease is %s", got)
	}
}

func TestNamespaces(t *testing.T) {
	tests := map[string]struct {
		args []string
		want namespaces
		err  string
	}{
		"no flag is all namespaces": {},
		"one":                       {args: []string{"--namespaces=a"}, want: namespaces{"a"}},
		"several":                   {args: []string{"--namespaces=team-a,b,0"}, want: namespaces{"team-a", "b", "0"}},
		"the last flag counts":      {args: []string{"--namespaces=a", "--namespaces=b"}, want: namespaces{"b"}},
		"empty":                     {args: []string{"--namespaces="}, err: "leave out the flag"},
		"an empty item":             {args: []string{"--namespaces=a,,b"}, err: `"" is not the name of a namespace`},
		"an empty item at the end":  {args: []string{"--namespaces=a,"}, err: `"" is not the name of a namespace`},
		"a space":                   {args: []string{"--namespaces=a, b"}, err: `" b" is not the name of a namespace`},
		"a wildcard":                {args: []string{"--namespaces=*"}, err: `"*" is not the name of a namespace`},
		"capital letters":           {args: []string{"--namespaces=Team"}, err: `"Team" is not the name of a namespace`},
		"64 characters":             {args: []string{"--namespaces=" + strings.Repeat("a", 64)}, err: "must be no more than 63 characters"},
		"a duplicate":               {args: []string{"--namespaces=a,b,a"}, err: `"a" occurs twice`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var o options
			flags := flag.NewFlagSet("", flag.ContinueOnError)
			flags.SetOutput(&bytes.Buffer{})
			o.bind(flags)
			err := flags.Parse(test.args)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || !strings.Contains(err.Error(), "namespaces") {
					t.Errorf("the error is %v, want one that contains %q and the name of the flag", err, test.err)
				}
				return
			}
			if err != nil || !slices.Equal(o.namespaces, test.want) {
				t.Errorf("the namespaces are %v, %v, want %v", o.namespaces, err, test.want)
			}
			if got := o.namespaces.cache().DefaultNamespaces; len(got) != len(test.want) {
				t.Errorf("the cache has the namespaces %v, want %v", got, test.want)
			}
		})
	}
}

func TestReadyzSucceedsWhenTheCachesHaveSynced(t *testing.T) {
	for _, filled := range []bool{true, false} {
		check := cacheSynced(&informertest.FakeInformers{Synced: &filled})
		if err := check(httptest.NewRequest(http.MethodGet, "/readyz", nil)); (err == nil) != filled {
			t.Errorf("caches filled: %t, but readyz says: %v", filled, err)
		}
	}
}

func TestDefaultReconcileTimeout(t *testing.T) {
	t.Parallel()
	var o options
	o.bind(flag.NewFlagSet("controller", flag.ContinueOnError))
	// Seven requests that are as slow as the lease allows, and one that the API server ends
	// after a minute.
	if o.reconcileTimeout < 7*renewDeadline/2 || o.reconcileTimeout <= time.Minute {
		t.Errorf("an attempt may take %s, which is too short for a slow API server", o.reconcileTimeout)
	}
}

var _ = Describe("a request without an answer", Ordered, func() {
	BeforeAll(alone)
	It("ends the attempt to reconcile and no other, of each kind with children", func(ctx SpecContext) {
		transport := faults.NewTransport()
		cfg := rest.CopyConfig(asController)
		cfg.Wrap(transport.Wrap)
		// One worker for each kind, so that no object is reconciled while another one waits.
		o := unserved()
		o.workers, o.reconcileTimeout = 1, 2*time.Second
		DeferCleanup(launchKinds(cfg, &o, clock.RealClock{}).end)

		each([]string{"ModelBox", "App", "Genericdaemon"}, func(kind string) {
			g := guarantees[kind]
			stuck := g.object(metav1.ObjectMeta{Namespace: newNamespace(), Name: "stuck"})
			well := g.object(metav1.ObjectMeta{Namespace: newNamespace(), Name: "well"})
			hits := func() int {
				_, hit := transport.Writes(stuck.GetNamespace())
				return hit
			}
			transport.Plan(stuck.GetNamespace(), map[int]faults.RequestFault{1: faults.NoAnswer, 2: faults.NoAnswer})
			Expect(env.Client.Create(ctx, stuck)).To(Succeed())
			Eventually(hits).Should(BeNumerically(">=", 1), kind)
			Expect(env.Client.Create(ctx, well)).To(Succeed())
			Eventually(readiness(ctx, well)).Should(HavePrefix("False "), kind)
			Eventually(readiness(ctx, stuck)).Should(HavePrefix("False "), "%s: it is not retried", kind)
			Expect(hits()).To(Equal(2), kind)
		})
	})
})
