// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/certificate"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// The API server of the suite receives a new caBundle within milliseconds, and the pod of these
// specs a new Secret within podLag.
const (
	settleForTest  = 2 * time.Second
	podLag         = time.Second
	mountedForTest = 5 * time.Second
	secretName     = "modelbox-webhook-tls"
)

// selfManaged is an install without cert-manager, as config/certs-self-managed makes it: the empty
// Secret, the permissions, the policy and two webhook configurations.
type selfManaged struct {
	own, user string
	secret    *corev1.Secret
	mutating  *admissionregistrationv1.MutatingWebhookConfiguration
	validates *admissionregistrationv1.ValidatingWebhookConfiguration
	webhook   *webhookPod
}

func newSelfManaged(ctx context.Context) *selfManaged {
	GinkgoHelper()
	s := &selfManaged{own: newNamespace()}
	s.user = testenv.ServiceAccount(s.own, "modelbox-controller")
	s.webhook = newWebhookPod()
	s.secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: secretName}}
	name := metav1.ObjectMeta{Name: "modelbox-webhook-" + s.own}
	s.mutating = &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: name, Webhooks: []admissionregistrationv1.MutatingWebhook{
		{Name: "one.example.com"}, {Name: "two.example.com"},
	}}
	for i := range s.mutating.Webhooks {
		w := &s.mutating.Webhooks[i]
		w.ClientConfig, w.Rules, w.NamespaceSelector = s.clientConfig(), modelBoxes(), s.selector()
		w.SideEffects, w.AdmissionReviewVersions = new(admissionregistrationv1.SideEffectClassNone), []string{"v1"}
	}
	s.validates = &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: name, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "three.example.com", ClientConfig: s.clientConfig(), Rules: modelBoxes(), NamespaceSelector: s.selector(),
		SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
	}}}
	// The API server connects to the host of such a Service, and verifies the name of the Service.
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: webhookService},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}}
	for _, obj := range []client.Object{service, s.mutating, s.validates} {
		Expect(env.Client.Create(ctx, obj)).To(Succeed())
	}
	s.applySecret("--server-side=false")
	Expect(get(ctx, s.secret).Data).To(BeEmpty())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(env.Client.Delete(ctx, s.mutating))).To(Succeed())
		Expect(client.IgnoreNotFound(env.Client.Delete(ctx, s.validates))).To(Succeed())
	})
	s.bind(ctx)
	return s
}

// applySecret applies the manifest of the Secret, as an install and each upgrade do.
func (s *selfManaged) applySecret(how string) {
	GinkgoHelper()
	manifest, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "certs-self-managed", "secret.yaml"))
	Expect(err).NotTo(HaveOccurred())
	_, err = env.Kubectl(strings.ReplaceAll(string(manifest), controllerNamespace, s.own), "apply", how, "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

func (s *selfManaged) clientConfig() admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
		Namespace: s.own, Name: webhookService, Path: new("/"), Port: new(s.webhook.port),
	}}
}

func (s *selfManaged) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.own}}
}

func modelBoxes() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{modelv1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"modelboxes"}},
	}}
}

// bind gives the controller the permissions of the component, and those on events and its lease, and
// bounds it by the policy.
func (s *selfManaged) bind(ctx context.Context) {
	GinkgoHelper()
	for _, obj := range s.roles() {
		Expect(env.Client.Create(ctx, obj)).To(Succeed())
	}
	grant(ctx, s.user, []testenv.Permission{{Namespace: s.own, Group: eventsv1.GroupName, Resource: "events", Verb: "create"}, {Namespace: s.own, Group: eventsv1.GroupName, Resource: "events", Verb: "patch"}})
	probe, err := env.As(testenv.ServiceAccount(s.own, "probe"))
	Expect(err).NotTo(HaveOccurred())
	Expect(env.BindControllers(ctx, "-"+s.own, testenv.ServiceAccount(s.own, ""), probe, keepsCertificate)).To(Succeed())
}

// keepsCertificate is the change of the policy in config/certs-self-managed.
func keepsCertificate(policy *admissionregistrationv1.ValidatingAdmissionPolicy) {
	Expect(policy.Spec.Variables[0]).To(Equal(admissionregistrationv1.Variable{Name: "keepsCertificate", Expression: "false"}))
	policy.Spec.Variables[0].Expression = "true"
}

// roles returns the roles of the component for this install, as in a limited one.
func (s *selfManaged) roles() []client.Object {
	GinkgoHelper()
	file, err := os.Open(filepath.Join(testenv.Root(), "config", "certs-self-managed", "roles.yaml"))
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	role, roleBinding, clusterRole, clusterBinding := &rbacv1.Role{}, &rbacv1.RoleBinding{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}
	documents := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for _, into := range []any{role, roleBinding, clusterRole, clusterBinding} {
		Expect(documents.Decode(into)).To(Succeed())
	}
	role.Namespace, roleBinding.Namespace = s.own, s.own
	clusterRole.Name += "-" + s.own
	clusterRole.Rules[0].ResourceNames = []string{s.mutating.Name}
	clusterBinding.Name, clusterBinding.RoleRef.Name = clusterRole.Name, clusterRole.Name
	roleBinding.Subjects[0].Namespace, clusterBinding.Subjects[0].Namespace = s.own, s.own
	return []client.Object{role, roleBinding, clusterRole, clusterBinding}
}

// start starts the leader of the install.
func (s *selfManaged) start() *process {
	GinkgoHelper()
	cfg, err := env.User(s.user)
	Expect(err).NotTo(HaveOccurred())
	o := defaults()
	o.leaderElect, o.leaderNamespace = false, s.own
	o.certificate.Secret, o.certificate.Configuration = secretName, s.mutating.Name
	o.certificate.Settle, o.certificate.Mounted = settleForTest, mountedForTest
	mgr := newManager(cfg, &o)
	Expect(o.addCertificate(mgr)).To(Succeed())
	leader := launch(mgr)
	DeferCleanup(leader.end)
	return leader
}

// mount lets the pod read the Secret as kubelet brings it, which is up to podLag late.
func (s *selfManaged) mount(ctx context.Context) {
	watch, err := env.Client.Watch(ctx, &corev1.SecretList{}, client.InNamespace(s.own))
	Expect(err).NotTo(HaveOccurred())
	go func() {
		defer watch.Stop()
		for event := range watch.ResultChan() {
			secret, ok := event.Object.(*corev1.Secret)
			if !ok || secret.Name != secretName {
				continue
			}
			time.AfterFunc(podLag, func() { s.webhook.load(secret.Data) })
		}
	}()
}

func (s *selfManaged) bundles(ctx context.Context) []string {
	GinkgoHelper()
	var out []string
	for _, w := range get(ctx, s.mutating).Webhooks {
		out = append(out, string(w.ClientConfig.CABundle))
	}
	for _, w := range get(ctx, s.validates).Webhooks {
		out = append(out, string(w.ClientConfig.CABundle))
	}
	return out
}

// settled waits until a certificate is served and the bundles have its CA only.
func (s *selfManaged) settled(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		data := get(ctx, s.secret).Data
		g.Expect(data).To(And(HaveKey("tls.crt"), HaveKey("tls.key"), HaveKey("ca.crt"), Not(HaveKey("next.crt")), Not(HaveKey("next.key"))))
		g.Expect(s.webhook.cert.Load()).NotTo(BeNil())
		g.Expect(s.webhook.pem.Load()).To(HaveValue(Equal(string(data["tls.crt"]))))
		g.Expect(string(data["ca.crt"])).To(ContainSubstring("BEGIN CERTIFICATE"))
		g.Expect(len(string(data["ca.crt"]))).To(BeNumerically("<", 1500), "one CA")
		g.Expect(s.bundles(ctx)).To(HaveEach(string(data["ca.crt"])))
	}, time.Minute).Should(Succeed())
}

// renew requests a renewal as docs/certificates.md describes, and waits until it is complete.
func (s *selfManaged) renew(ctx context.Context) {
	GinkgoHelper()
	before := string(get(ctx, s.secret).Data["tls.crt"])
	_, err := env.Kubectl("", "-n", s.own, "annotate", "secret", secretName, certificate.AnnotationRenew+"=now")
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() map[string]string { return get(ctx, s.secret).Annotations }, time.Minute).ShouldNot(HaveKey(certificate.AnnotationRenew))
	Expect(string(s.secret.Data["tls.crt"])).NotTo(Equal(before))
}

func (s *selfManaged) create(ctx context.Context, i int64) error {
	box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: fmt.Sprintf("box-%d", i)}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
	return env.Client.Create(ctx, box, client.DryRunAll)
}

// webhookPod is a webhook that allows everything. It closes each connection, so that the API
// server verifies its certificate for each request.
type webhookPod struct {
	port int32
	cert atomic.Pointer[tls.Certificate]
	pem  atomic.Pointer[string]
}

func newWebhookPod() *webhookPod {
	GinkgoHelper()
	w := &webhookPod{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(allow))
	server.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if c := w.cert.Load(); c != nil {
			return c, nil
		}
		return nil, fmt.Errorf("there is no certificate yet")
	}}
	server.Config.SetKeepAlivesEnabled(false)
	server.StartTLS()
	server.TLS.Certificates = nil
	DeferCleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	number, err := strconv.ParseInt(port, 10, 32)
	Expect(err).NotTo(HaveOccurred())
	w.port = int32(number)
	return w
}

func (w *webhookPod) load(data map[string][]byte) {
	if pair, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"]); err == nil {
		w.cert.Store(&pair)
		w.pem.Store(new(string(data["tls.crt"])))
	}
}

func allow(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &review) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	_ = json.NewEncoder(w).Encode(review)
}

var _ = Describe("the certificate of the webhook, without cert-manager", long, func() {
	It("is issued, renewed twice without a lost admission, and repaired", func(ctx SpecContext) {
		s := newSelfManaged(ctx)
		s.mount(ctx)
		Expect(s.create(ctx, 0)).NotTo(Succeed(), "there is no certificate yet")
		leader := s.start()
		s.settled(ctx)
		Eventually(func() error { return s.create(ctx, 0) }).Should(Succeed())

		By("renewing it under load, with a new leader in between")
		load, stop := context.WithCancel(ctx)
		defer stop()
		var admitted atomic.Int64
		lost := make(chan error, 1000)
		var done sync.WaitGroup
		for range 4 {
			done.Go(func() {
				for load.Err() == nil {
					if err := s.create(ctx, admitted.Add(1)); err != nil {
						lost <- err
					}
				}
			})
		}
		s.renew(ctx)
		s.renew(ctx) // While the first CA is still trusted.
		Expect(leader.end()).To(Succeed())
		s.start()
		s.settled(ctx)
		stop()
		done.Wait()
		close(lost)
		var failures []error
		for err := range lost {
			failures = append(failures, err)
		}
		Expect(failures).To(BeEmpty())
		Expect(admitted.Load()).To(BeNumerically(">", 100))
		AddReportEntry("renewals", fmt.Sprintf("%d admissions, 0 lost", admitted.Load()))

		By("applying the manifest of the Secret again")
		for _, how := range []string{"--server-side=false", "--server-side"} {
			before := get(ctx, s.secret).Data
			s.applySecret(how)
			Expect(get(ctx, s.secret).Data).To(Equal(before))
		}

		By("restoring caBundle")
		patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/webhooks/1/clientConfig/caBundle"}]`))
		Expect(env.Client.Patch(ctx, s.mutating.DeepCopy(), patch)).To(Succeed())
		s.settled(ctx)

		By("owning caBundle and nothing else")
		Expect(caBundleOwners(get(ctx, s.mutating).ManagedFields)).To(ConsistOf("modelbox-controller-certificate"))

		By("issuing a new one when the Secret is emptied")
		Expect(env.Client.Patch(ctx, s.secret.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"data":null}`)))).To(Succeed())
		s.settled(ctx)
		Eventually(func() error { return s.create(ctx, 0) }).Should(Succeed())

		By("sending no request when nothing changes")
		var mark int
		Eventually(func(g Gomega) { // The cache may be behind the last write.
			mark = s.requests()
			g.Consistently(s.requests, time.Second).Should(Equal(mark))
		}, time.Minute).Should(Succeed())
		Consistently(s.requests, 3*time.Second).Should(BeNumerically("<=", mark+1), "at most one watch that begins again")
	})

	It("takes over the Secret of cert-manager", func(ctx SpecContext) {
		s := &selfManaged{own: newNamespace()}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: secretName}, Type: corev1.SecretTypeTLS,
			Data: map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k"), "ca.crt": []byte("a")}}
		Expect(env.Client.Create(ctx, secret)).To(Succeed())
		for _, how := range []string{"--server-side=false", "--server-side"} {
			s.applySecret(how)
			after := get(ctx, secret.DeepCopy())
			Expect(after.Data).To(Equal(secret.Data))
			Expect(after.Type).To(Equal(corev1.SecretTypeTLS))
		}
	})

	It("refuses a validity that is too short for a renewal", func() {
		o := options{certificate: certificate.Options{Secret: secretName, Validity: time.Minute}, leaderNamespace: "ops"}
		mgr := newManager(asController, &options{metricsAddress: "0", probeAddress: "0"})
		Expect(o.addCertificate(mgr)).To(MatchError(ContainSubstring("--webhook-certificate-secret: the validity is 1m0s")))
	})

	DescribeTable("writes the configurations of its install", func(n namespaces, want string) {
		Expect(n.configuration("ops")).To(Equal(want))
	},
		Entry("for the whole cluster", nil, "modelbox-webhook"),
		Entry("for some namespaces", namespaces{"a"}, "modelbox-webhook-ops"),
	)

	It("reports what stops it as an event", func(ctx SpecContext) {
		s := newSelfManaged(ctx)
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: "modelbox-controller-certificate"}}
		change(ctx, role, func(r *rbacv1.Role) { r.Rules[0].Verbs = []string{"get", "list", "watch"} })
		cfg, err := env.User(s.user)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error { return s.ownWrites()["the Secret"](ctx, cfg) }).Should(Satisfy(apierrors.IsForbidden), "the Role is in effect")
		s.start()
		Eventually(func() []string {
			list := &eventsv1.EventList{}
			Expect(env.Client.List(ctx, list, client.InNamespace(s.own))).To(Succeed())
			var notes []string
			for _, e := range list.Items {
				if e.Reason == "CertificateNotRenewed" && e.Type == corev1.EventTypeWarning {
					notes = append(notes, e.Note)
				}
			}
			return notes
		}, time.Minute).Should(ContainElement(ContainSubstring("cannot patch resource \"secrets\"")))
	})
})

// requests counts the requests of the controller.
func (s *selfManaged) requests() int {
	GinkgoHelper()
	requests, err := env.Requests(s.user)
	Expect(err).NotTo(HaveOccurred())
	return len(requests)
}

// caBundleOwners returns the field managers that own a caBundle.
func caBundleOwners(entries []metav1.ManagedFieldsEntry) (owners []string) {
	for _, entry := range entries {
		if jsonHas(entry.FieldsV1.GetRawBytes(), "f:caBundle") {
			owners = append(owners, entry.Manager)
		}
	}
	return owners
}

func jsonHas(raw []byte, key string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return false
	}
	for name, value := range fields {
		if name == key || jsonHas(value, key) {
			return true
		}
	}
	return false
}

// ownWrites are what the controller itself does.
func (s *selfManaged) ownWrites() map[string]request {
	return map[string]request{
		"the Secret": patches(s.secret.DeepCopy(), func(o *corev1.Secret) { o.Data = map[string][]byte{"tls.crt": []byte("x")} }),
		"caBundle": patches(s.mutating.DeepCopy(), func(o *admissionregistrationv1.MutatingWebhookConfiguration) {
			for i := range o.Webhooks {
				o.Webhooks[i].ClientConfig.CABundle = s.secret.Data["ca.crt"]
			}
		}),
	}
}
