// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/test/faults"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// The files of the optional kinds in test/crds.
const (
	routesCRD      = "gateway.networking.k8s.io_httproutes.yaml"
	monitorsCRD    = "monitoring.coreos.com_podmonitors.yaml"
	autoscalersCRD = "keda.sh_scaledobjects.yaml"
)

// installed are the kinds that installCRD has installed.
var installed = map[string]bool{}

// installCRD installs a file of test/crds until the spec ends, or until remove.
func installCRD(file string) (remove func()) {
	GinkgoHelper()
	options := envtest.CRDInstallOptions{Paths: []string{filepath.Join(testenv.Root(), "test", "crds", file)}, MaxTime: time.Minute}
	crds, err := envtest.InstallCRDs(env.Config, options)
	Expect(err).NotTo(HaveOccurred())
	installed[crds[0].Spec.Names.Kind] = true
	remove = func() {
		GinkgoHelper()
		delete(installed, crds[0].Spec.Names.Kind)
		Expect(envtest.UninstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: crds})).To(Succeed())
		Eventually(func() bool { return served(crds[0]) }).WithTimeout(time.Minute).Should(BeFalse())
		crd := untypedChild("apiextensions.k8s.io/v1", "CustomResourceDefinition", metav1.ObjectMeta{Name: crds[0].Name})
		Eventually(exists(context.Background(), crd)).WithTimeout(time.Minute).Should(BeFalse())
	}
	DeferCleanup(remove)
	return remove
}

// installOptionalKinds installs the CRDs of the children of the golden file of blocks.
func installOptionalKinds() {
	GinkgoHelper()
	for _, file := range []string{routesCRD, monitorsCRD} {
		installCRD(file)
	}
}

// served reports whether the API server has a kind.
func served(crd *apiextensionsv1.CustomResourceDefinition) bool {
	GinkgoHelper()
	client, err := rest.HTTPClientFor(env.Config)
	Expect(err).NotTo(HaveOccurred())
	answer, err := client.Get(env.Config.Host + "/apis/" + crd.Spec.Group + "/" + crd.Spec.Versions[0].Name + "/" + crd.Spec.Names.Plural)
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.Body.Close()).To(Succeed())
	return answer.StatusCode == 200
}

// own is a controller of one spec, whose clock stands still.
type own struct {
	*process
	clock     *clocktesting.FakePassiveClock
	transport *faults.Transport
}

// startOwn starts a controller instead of that of the suite.
func startOwn(cfg *rest.Config) *own {
	GinkgoHelper()
	p := &own{clock: clocktesting.NewFakePassiveClock(time.Now()), transport: faults.NewTransport()}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(p.transport.Wrap)
	o := unserved()
	p.process = launchKinds(cfg, &o, p.clock, func(*ctrl.Options) { o.watches.Every = 100 * time.Millisecond })
	DeferCleanup(p.end)
	p.synced()
	return p
}

// ready is what /readyz says.
func (p *own) ready() error {
	request, err := http.NewRequest(http.MethodGet, "/readyz", nil)
	Expect(err).NotTo(HaveOccurred())
	return cacheSynced(p.GetCache())(request)
}

// pass lets time pass, and wakes an object.
func (p *own) pass(ctx context.Context, d time.Duration, box *modelv1.ModelBox) {
	GinkgoHelper()
	p.clock.SetTime(p.clock.Now().Add(d))
	change(ctx, box, func(b *modelv1.ModelBox) { metav1.SetMetaDataAnnotation(&b.ObjectMeta, "wake", p.clock.Now().String()) })
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func httpRoute(named metav1.ObjectMeta) *unstructured.Unstructured {
	return untypedChild("gateway.networking.k8s.io/v1", "HTTPRoute", named)
}

func podMonitor(named metav1.ObjectMeta) *unstructured.Unstructured {
	return untypedChild("monitoring.coreos.com/v1", "PodMonitor", named)
}

func untypedChild(apiVersion, kind string, named metav1.ObjectMeta) *unstructured.Unstructured {
	child := &unstructured.Unstructured{}
	child.SetAPIVersion(apiVersion)
	child.SetKind(kind)
	child.SetNamespace(named.Namespace)
	child.SetName(named.Name)
	return child
}

// exists returns a function that reports whether there is an object.
func exists(ctx context.Context, obj client.Object) func() bool {
	return func() bool {
		GinkgoHelper()
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false
		}
		Expect(err).NotTo(HaveOccurred())
		return true
	}
}

// message returns a function that returns the message of Ready of an object.
func message(ctx context.Context, obj status.Object) func() string {
	return func() string {
		GinkgoHelper()
		Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		if ready := meta.FindStatusCondition(obj.GetConditions(), status.ConditionReady); ready != nil {
			return ready.Message
		}
		return ""
	}
}

// routed returns a ModelBox with a route.
func routed(named metav1.ObjectMeta) *modelv1.ModelBox {
	return &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{
		Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}},
		Children: modelv1.Children{Route: &modelv1.Route{
			Hosts: []modelv1.Host{"*.example.com", "chat.example.com"}, Path: "/v1", TLS: true,
			Gateway: modelv1.GatewayReference{Namespace: "infra", Name: "public", Listener: "https"},
		}},
	}}
}

var _ = Describe("a kind that the cluster may not have", func() {
	var named metav1.ObjectMeta
	BeforeEach(func() {
		alone()
		named = metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
	})

	It("is named in the message of Ready, and used when it is installed", func(ctx SpecContext) {
		p, box := startOwn(asController), routed(named)
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		rollOut(ctx, named)
		unavailable := ContainSubstring("Unavailable: HTTPRoute (gateway.networking.k8s.io/v1) is not installed; install the Gateway API or remove spec.route")
		Eventually(message(ctx, box)).Should(unavailable)
		Eventually(readiness(ctx, box)).Should(HavePrefix("True"), "the rest is served")
		Expect(p.ready()).To(Succeed())

		installCRD(routesCRD)
		p.pass(ctx, 30*time.Second, box)
		Consistently(exists(ctx, httpRoute(named))).WithTimeout(time.Second).Should(BeFalse(), "it is asked for once a minute")
		p.pass(ctx, 31*time.Second, box)
		Eventually(exists(ctx, httpRoute(named))).Should(BeTrue())
		Eventually(message(ctx, box)).ShouldNot(ContainSubstring("Unavailable"))
	})

	It("may be removed: its informer stops, and the others do not", func(ctx SpecContext) {
		remove := installCRD(routesCRD)
		p, box := startOwn(asController), routed(named)
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Eventually(exists(ctx, httpRoute(named))).Should(BeTrue())
		remove()
		p.transport.CloseWatches("httproutes")
		Eventually(func() string {
			p.pass(ctx, time.Millisecond, box) // The next reconcile of the object reports it.
			return message(ctx, box)()
		}).Should(ContainSubstring("Unavailable: HTTPRoute (gateway.networking.k8s.io/v1) is not installed"))
		Eventually(p.ready).Should(Succeed())

		other := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: "other"}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
		Expect(env.Client.Create(ctx, other)).To(Succeed())
		rollOut(ctx, other.ObjectMeta)
		Eventually(readiness(ctx, other)).Should(HavePrefix("True"))

		installCRD(routesCRD)
		p.pass(ctx, time.Minute, box)
		Eventually(exists(ctx, httpRoute(named))).Should(BeTrue())
		Expect(p.end()).To(Succeed())
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Route = nil })
		startOwn(asController)
		Eventually(exists(ctx, httpRoute(named))).Should(BeFalse(), "also if the block was removed while no controller ran")
	})

	It("may come back: nothing waits for what an earlier informer has seen", func(ctx SpecContext) {
		remove := installCRD(monitorsCRD)
		p := startOwn(asController)
		var boxes []*modelv1.ModelBox
		for i := range 9 { // More than there are workers.
			box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: fmt.Sprint("web-", i)}, Spec: modelv1.ModelBoxSpec{
				Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}}, Children: modelv1.Children{Monitoring: &modelv1.Monitoring{}},
			}}
			Expect(env.Client.Create(ctx, box)).To(Succeed())
			boxes = append(boxes, box)
		}
		each := func(say string, want bool) {
			GinkgoHelper()
			for _, box := range boxes {
				Eventually(exists(ctx, podMonitor(metav1.ObjectMeta{Namespace: box.Namespace, Name: box.Name}))).Should(Equal(want), say)
			}
		}
		each("at first", true)
		remove()
		p.transport.CloseWatches("podmonitors")
		Eventually(func() string {
			p.pass(ctx, time.Millisecond, boxes[0])
			return message(ctx, boxes[0])()
		}).Should(ContainSubstring("Unavailable: PodMonitor (monitoring.coreos.com/v1) is not installed"))
		installCRD(monitorsCRD)
		p.clock.SetTime(p.clock.Now().Add(time.Minute))
		for _, box := range boxes {
			p.pass(ctx, time.Millisecond, box)
		}
		each("when the kind is there again", true)
		for _, box := range boxes {
			change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Monitoring, b.Spec.Image = nil, "nginx:2" })
		}
		other := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: "other"}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
		Expect(env.Client.Create(ctx, other)).To(Succeed())
		Eventually(exists(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: "other"}})).WithTimeout(5 * time.Second).Should(BeTrue())
		each("without the block", false)
		for _, box := range boxes {
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: box.Namespace, Name: box.Name}}
			Eventually(func() string { return get(ctx, deployment).Spec.Template.Spec.Containers[0].Image }).Should(Equal("nginx:2"))
		}
	})

	It("may have a list that never completes: no object waits for it", func(ctx SpecContext) {
		installCRD(monitorsCRD)
		cfg := rest.CopyConfig(asController)
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTrip(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/podmonitors") && r.URL.Query().Get("limit") != "1" {
					body := `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"conversion webhook failed"}`
					return &http.Response{StatusCode: http.StatusInternalServerError, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
						Body: io.NopCloser(strings.NewReader(body))}, nil
				}
				return next.RoundTrip(r)
			})
		})
		p := startOwn(cfg)
		const many = 50
		app := func(namespace, name string, monitoring *modelv1.Monitoring) *appv1.App {
			return &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: appv1.AppSpec{
				Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}}, Children: modelv1.Children{Monitoring: monitoring},
			}}
		}
		deployed := func(app *appv1.App) func() bool {
			return exists(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}})
		}
		for i := range many {
			Expect(env.Client.Create(ctx, app(named.Namespace, fmt.Sprint("web-", i), &modelv1.Monitoring{}))).To(Succeed())
		}
		other := app(newNamespace(), "other", nil)
		Expect(env.Client.Create(ctx, other)).To(Succeed())
		Eventually(deployed(other)).WithTimeout(5 * time.Second).Should(BeTrue())
		for i := range many {
			Eventually(deployed(app(named.Namespace, fmt.Sprint("web-", i), nil))).Should(BeTrue())
		}
		first := app(named.Namespace, "web-0", nil)
		p.clock.SetTime(p.clock.Now().Add(11 * time.Second))
		Eventually(message(ctx, first)).Should(ContainSubstring("Unavailable: the controller cannot list PodMonitor, which spec.monitoring needs"))
	})

	It("needs a permission, which may come and go", func(ctx SpecContext) {
		installCRD(routesCRD)
		shipped, err := testenv.Permissions("config/controller/generated/role.yaml", testenv.Every)
		Expect(err).NotTo(HaveOccurred())
		user := controllers + named.Namespace
		Expect(client.IgnoreAlreadyExists(env.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controllerNamespace}}))).To(Succeed())
		grant(ctx, user, shipped)
		cfg, err := env.User(user)
		Expect(err).NotTo(HaveOccurred())
		p, box := startOwn(cfg), routed(named)
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Eventually(message(ctx, box)).Should(And(
			ContainSubstring("Unavailable: the controller may not list HTTPRoute; grant it (docs/optional-children.md) or remove spec.route: "),
			ContainSubstring(`cannot list resource "httproutes"`)))
		p.pass(ctx, 30*time.Second, box)
		Eventually(message(ctx, box)).Should(ContainSubstring("Unavailable"))
		lists := func() (n int) {
			requests, err := env.Requests(user)
			Expect(err).NotTo(HaveOccurred())
			for _, r := range requests {
				if r.Resource == "httproutes" && r.Verb == "list" {
					n++
				}
			}
			return n
		}
		Expect(lists()).To(BeNumerically("<=", 2), "one at the start, and one for the object")

		component, err := testenv.Permissions("config/gateway-api/roles.yaml", testenv.Every)
		Expect(err).NotTo(HaveOccurred())
		revoke, err := env.Grant(ctx, user, component)
		Expect(err).NotTo(HaveOccurred())
		p.pass(ctx, time.Minute, box)
		Eventually(exists(ctx, httpRoute(named))).Should(BeTrue())

		Expect(revoke()).To(Succeed())
		Eventually(func() string {
			p.transport.CloseWatches("httproutes")
			p.pass(ctx, time.Millisecond, box)
			return message(ctx, box)()
		}).Should(ContainSubstring("Unavailable"))
		Expect(exists(ctx, httpRoute(named))()).To(BeTrue())
		Eventually(p.ready).Should(Succeed())

		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Route = nil })
		grant(ctx, user, component)
		p.clock.SetTime(p.clock.Now().Add(time.Minute))
		Eventually(exists(ctx, httpRoute(named))).Should(BeFalse(), "its child is handled again")
		requests, err := env.Requests(user)
		Expect(err).NotTo(HaveOccurred())
		_, beyond := testenv.Compare(append(shipped, component...), requests)
		Expect(beyond).To(BeEmpty())
	})

	It("with a name that is taken is not touched", func(ctx SpecContext) {
		installCRD(monitorsCRD)
		foreign := podMonitor(named)
		foreign.Object["spec"] = map[string]any{"selector": map[string]any{}, "podMetricsEndpoints": []any{}}
		Expect(env.Client.Create(ctx, foreign)).To(Succeed())
		version := foreign.GetResourceVersion()
		startOwn(asController)
		box := &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{
			Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}}, Children: modelv1.Children{Monitoring: &modelv1.Monitoring{}},
		}}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Eventually(readiness(ctx, box)).Should(Equal("False NameConflict"))
		Expect(strings.ToLower(message(ctx, box)())).To(ContainSubstring("podmonitor"))
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Monitoring = nil })
		Eventually(readiness(ctx, box)).Should(Equal("False Progressing"))
		Expect(get(ctx, foreign).GetResourceVersion()).To(Equal(version))
	})
})
