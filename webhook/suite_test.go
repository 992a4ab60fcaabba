// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

var (
	env *testenv.Env
	// stop stops the webhook process that is running.
	stop func()
	// clients has the CA of the client certificate that the API server presents.
	clients clientFiles
)

func TestWebhook(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "webhook")
}

var _ = BeforeSuite(func() {
	logger := zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	format.MaxLength = 0
	SetDefaultEventuallyTimeout(20 * time.Second)

	var err error
	clients = newClientFiles()
	env, err = testenv.Start(testenv.Options{Webhooks: true, ClientCertificate: &clients.ClientCertificate})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return env.Stop() })
	start(nil)
	DeferCleanup(func() { stop() })
})

// start starts the webhook process, what main runs without its flags, and waits until it is ready.
func start(change func(*options)) {
	GinkgoHelper()
	local := env.Webhooks
	o := options{probeAddress: "0", pprofAddress: "0", certDir: local.LocalServingCertDir}
	o.metrics.BindAddress = "0"
	o.address = net.JoinHostPort(local.LocalServingHost, strconv.Itoa(local.LocalServingPort))
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, &o) }()
	stop = func() {
		GinkgoHelper()
		cancel()
		Eventually(done).Should(Receive(BeNil()))
	}
	Eventually(func() error {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: "default"}}
		if err := env.Client.Create(ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		conn, err := (&net.Dialer{Timeout: time.Second}).Dial("tcp", o.address)
		if err != nil {
			return err
		}
		return conn.Close()
	}).Should(Succeed())
}

// withoutWebhooks does something while the webhook configurations are away.
func withoutWebhooks(ctx context.Context, do func() error) {
	GinkgoHelper()
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, configuration := range []client.Object{mutating, validating} {
		Expect(env.Client.Get(ctx, client.ObjectKey{Name: "modelbox-webhook"}, configuration)).To(Succeed())
		Expect(env.Client.Delete(ctx, configuration)).To(Succeed())
	}
	bad := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "probe"}, Spec: modelv1.ModelBoxSpec{Image: "Refused"}}
	refused := func() error { return env.Client.Create(ctx, bad.DeepCopy(), client.DryRunAll) }
	// What fails in do must not fail in every spec after it.
	defer func() {
		for _, configuration := range []client.Object{mutating, validating} {
			configuration.SetResourceVersion("")
			Expect(env.Client.Create(ctx, configuration)).To(Succeed())
		}
		good := bad.DeepCopy()
		good.Spec.Image = "nginx:1.27"
		Eventually(func() int {
			before := calls(ctx)
			Expect(env.Client.Create(ctx, good.DeepCopy(), client.DryRunAll)).To(Succeed())
			return calls(ctx) - before
		}).Should(Equal(2), "both webhooks are called again")
	}()
	Eventually(refused).Should(Succeed())
	Expect(do()).To(Succeed())
}

// calls counts the requests to webhooks that the API server has made, which it counts before it answers its client.
func calls(ctx context.Context) int {
	GinkgoHelper()
	kube, err := kubernetes.NewForConfig(env.Config)
	Expect(err).NotTo(HaveOccurred())
	metrics, err := kube.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	total := 0
	for _, series := range regexp.MustCompile(`(?m)^apiserver_admission_webhook_request_total\{.*\} (\d+)$`).FindAllSubmatch(metrics, -1) {
		count, err := strconv.Atoi(string(series[1]))
		Expect(err).NotTo(HaveOccurred())
		total += count
	}
	return total
}

// noSizes are the sizes of a cluster that has only the built-in ones.
func noSizes() modelbox.Sizes { return nil }

// webhooks returns the webhooks of all kinds by their paths.
func webhooks(t testing.TB) *http.ServeMux { return webhooksOf(t, all.WithSizes(noSizes)) }

// webhooksOf returns those of a process that has some kinds.
func webhooksOf(t testing.TB, kinds []*all.Kind) *http.ServeMux {
	t.Helper()
	o := options{probeAddress: "0", pprofAddress: "0", address: ":0"}
	o.metrics.BindAddress = "0"
	mgr, err := newManager(&o)
	if err != nil {
		t.Fatal(err)
	}
	register(mgr.GetWebhookServer(), kinds)
	return mgr.GetWebhookServer().WebhookMux()
}

// post sends a review to a webhook and returns the answer.
func post(webhook http.Handler, path, review string) []byte {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(review))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	webhook.ServeHTTP(w, r)
	return w.Body.Bytes()
}

// newNamespace makes a namespace for one spec.
func newNamespace() string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(env.Client.Create(context.Background(), ns)).To(Succeed())
	return ns.Name
}
