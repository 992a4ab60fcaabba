// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

var (
	// start starts the control plane of the tests, which no test shares with another at the
	// same time: webhook configurations are for the whole cluster.
	start   = sync.OnceValues(func() (*testenv.Env, error) { return testenv.Start(testenv.Options{}) })
	started atomic.Bool
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard()) // Otherwise controller-runtime prints that it has no logger.
	code := m.Run()
	if started.Load() {
		if env, err := start(); err == nil {
			_ = env.Stop()
		}
	}
	os.Exit(code)
}

// apiServer returns a client of a real API server with the CRDs.
func apiServer(t *testing.T) client.Client {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS is not what `go run ./hack/local binaries` prints")
	}
	started.Store(true)
	env, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left := labelled(t, env.Client); len(left) > 0 {
			t.Errorf("left in the cluster: %q", left)
			_, _ = RemoveLeftovers(context.WithoutCancel(t.Context()), env.Client)
		}
	})
	return env.Client
}

// labelled returns the kinds and names of the objects of all runs.
func labelled(t *testing.T, c client.Client) (found []string) {
	t.Helper()
	for _, kind := range temporary {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersionKind)
		if err := c.List(context.WithoutCancel(t.Context()), list, client.HasLabels{RunLabel}); err != nil {
			t.Fatal(err)
		}
		for _, object := range list.Items {
			found = append(found, kind.Kind+" "+object.GetName())
		}
	}
	return found
}

func mustLoad(t *testing.T, paths ...string) (objects []*unstructured.Unstructured) {
	t.Helper()
	for _, path := range paths {
		found, err := Load(t.Context(), "", filepath.Join(testenv.Root(), "config", path))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, found...)
	}
	return objects
}

// serve serves a webhook with the certificate of a directory, and returns its address. It counts
// the requests.
func serve(t *testing.T, requests *atomic.Int32, patch string) Endpoint {
	t.Helper()
	dir := t.TempDir()
	caBundle, err := Certificates(dir)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		var review admissionv1.AdmissionReview
		if r.URL.Path != probedPath {
			t.Errorf("a request to %s", r.URL)
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			return // The request was interrupted.
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if patch != "" {
			review.Response.Patch, review.Response.PatchType = []byte(patch), new(admissionv1.PatchTypeJSONPatch)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	server.Config.ErrorLog = stdlog.New(io.Discard, "", 0) // It would log that a client refused the certificate.
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return Endpoint{URL: server.URL, CABundle: caBundle}
}

const sets = `[{"op": "add", "path": "/spec/defaultProbes", "value": "Enabled"}]`

func TestRealWebhookThatIsReached(t *testing.T) {
	c := apiServer(t)
	var requests atomic.Int32
	endpoint := serve(t, &requests, sets)
	for range 3 {
		requests.Store(0)
		if err := NewRun(c).Reachable(t.Context(), mustLoad(t, "webhook/generated"), endpoint, "default"); err != nil {
			t.Fatal(err)
		}
		if requests.Load() == 0 {
			t.Error("the webhook was not called")
		}
		if left := labelled(t, c); len(left) > 0 {
			t.Errorf("left in the cluster: %q", left)
		}
	}
	var boxes unstructured.UnstructuredList
	boxes.SetAPIVersion("model.github.com/v1")
	boxes.SetKind("ModelBoxList")
	if err := c.List(t.Context(), &boxes); err != nil || len(boxes.Items) > 0 {
		t.Errorf("the dry run has stored %d objects, %v", len(boxes.Items), err)
	}
}

func TestRealWebhookThatIsNotReached(t *testing.T) {
	c := apiServer(t)
	addresses, err := freeport.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int32
	other := serve(t, &requests, sets)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // Accepts connections, and answers none.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for name, test := range map[string]struct {
		url, want string
	}{
		"a closed port":            {"https://" + addresses[0], "connection refused"},
		"another server":           {other.URL, "certificate"},
		"a server without answers": {"https://" + silent.Addr().String(), "failed calling webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			caBundle, err := Certificates(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			err = NewRun(c).Reachable(t.Context(), mustLoad(t, "webhook/generated"), Endpoint{URL: test.url, CABundle: caBundle}, "default")
			if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %v with %q", err, ErrUnreachable, test.want)
			}
			if left := labelled(t, c); len(left) > 0 {
				t.Errorf("left in the cluster: %q", left)
			}
		})
	}
	if requests.Load() > 0 {
		t.Error("the other server had a request")
	}
}

// A user's own object passes no webhook of a probe, and an interruption leaves nothing.
func TestRealProbeHasNoEffectOnOthers(t *testing.T) {
	c := apiServer(t)
	var requests atomic.Int32
	// It is called, but sets nothing: the probe continues until it is interrupted.
	endpoint := serve(t, &requests, "")
	ctx, interrupt := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- NewRun(c).Reachable(ctx, mustLoad(t, "webhook/generated"), endpoint, "default") }()
	await(t, "a call of the webhook", func() bool { return requests.Load() > 0 })
	if names := labelled(t, c); !slices.Equal(names, []string{"MutatingWebhookConfiguration modelbox-webhook-run-probe"}) {
		t.Errorf("during a probe the cluster has %q", names)
	}
	box := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"image": "a:1"}}}
	box.SetAPIVersion("model.github.com/v1")
	box.SetKind("ModelBox")
	box.SetNamespace("default")
	box.SetName("mine")
	if err := c.Create(t.Context(), box, client.DryRunAll); err != nil {
		t.Error(err)
	}
	interrupt()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// await polls until something is true.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(30 * time.Second); !holds(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

func TestRealRunRemovesWhatItInstalled(t *testing.T) {
	c := apiServer(t)
	objects := mustLoad(t, "webhook/generated", "rights/requester.yaml", "rights/delegated.yaml")
	deployed := mustLoad(t, "rights/requester.yaml")
	for _, object := range deployed {
		if err := c.Create(t.Context(), object.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), object) })
	}
	install := func() *Run {
		t.Helper()
		run := NewRun(c)
		if err := run.Policies(t.Context(), objects); err != nil {
			t.Fatal(err)
		}
		if err := run.Webhooks(t.Context(), objects, Endpoint{URL: "https://127.0.0.1:1", CABundle: nil}); err != nil {
			t.Fatal(err)
		}
		return run
	}
	want := []string{
		"MutatingWebhookConfiguration modelbox-webhook-run", "ValidatingWebhookConfiguration modelbox-webhook-run",
		"ValidatingAdmissionPolicyBinding modelbox-delegated-run", "ValidatingAdmissionPolicyBinding modelbox-requester-run",
		"ValidatingAdmissionPolicy modelbox-delegated-run", "ValidatingAdmissionPolicy modelbox-requester-run",
	}
	killed := install()
	if err := NewRun(c).Webhooks(t.Context(), objects, Endpoint{}); err == nil {
		t.Error("a run overwrites the objects of another one")
	}
	if removed, err := RemoveLeftovers(t.Context(), c); err != nil || !slices.Equal(removed, want) {
		t.Errorf("removed %q, %v, want %q", removed, err, want)
	}
	second := install()
	if err := killed.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	if left := labelled(t, c); !slices.Equal(left, want) {
		t.Errorf("the first run has removed objects of the second: %q is left", left)
	}
	bound := &unstructured.Unstructured{}
	bound.SetGroupVersionKind(admission("ValidatingAdmissionPolicyBinding"))
	if err := c.Get(t.Context(), client.ObjectKey{Name: "modelbox-requester-run"}, bound); err != nil {
		t.Fatal(err)
	}
	if policy, _, _ := unstructured.NestedString(bound.Object, "spec", "policyName"); policy != "modelbox-requester-run" {
		t.Errorf("the binding has the policy %q", policy)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 { // the second time there is nothing left
		if err := second.Remove(interrupted); err != nil {
			t.Error(err)
		}
	}
	for _, object := range deployed {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object.DeepCopy()); err != nil {
			t.Errorf("a deployed policy is gone: %v", err)
		}
	}
}

func TestRealDeployedOperator(t *testing.T) {
	c := apiServer(t)
	objects := mustLoad(t, "webhook/generated")
	expect := func(want string) {
		t.Helper()
		if found, err := Deployed(t.Context(), c, objects); err != nil || found != want {
			t.Errorf("found %q, %v, want %q", found, err, want)
		}
	}
	expect("")
	run := NewRun(c)
	if err := run.Webhooks(t.Context(), objects, Endpoint{URL: "https://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	expect("") // What a run leaves is not deployed.
	for _, object := range objects {
		created := object.DeepCopy()
		if err := c.Create(t.Context(), created); err != nil {
			t.Fatal(err)
		}
		expect(object.GetKind() + " modelbox-webhook")
		if _, err := RemoveLeftovers(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		expect(object.GetKind() + " modelbox-webhook")
		if err := c.Delete(t.Context(), created); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRealCRDsAreCompared(t *testing.T) {
	c := apiServer(t)
	crds := mustLoad(t, "crd/bases")
	expect := func(want Found) {
		t.Helper()
		found, err := CompareCRDs(t.Context(), c, crds)
		if diff := cmp.Diff(want, found); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	if len(crds) != 5 {
		t.Fatalf("%d CRDs in this clone", len(crds))
	}
	expect(Found{})

	// Those of another version: a field less, and a kind that the cluster does not have.
	versions, _, _ := unstructured.NestedSlice(crds[0].Object, "spec", "versions")
	unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties", "image")
	if err := unstructured.SetNestedSlice(crds[0].Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	crds[1].SetName("others.example.com")
	expect(Found{Missing: []string{"others.example.com"}, Different: []string{crds[0].GetName()}})
}

func TestRealLeaseNamespace(t *testing.T) {
	c := apiServer(t)
	expect := func(ofContext, want, wantErr string) {
		t.Helper()
		got, err := LeaseNamespace(t.Context(), c, ofContext)
		if got != want || (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("got %q, %v, want %q, %q", got, err, want, wantErr)
		}
	}
	expect("default", "default", "")
	expect("team-x", "", "kubectl create namespace team-x")
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	if err := c.Create(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { deleteNamespace(t, c, system) })
	expect("team-x", Namespace, "")

	if holder, err := LeaseHolder(t.Context(), c, Namespace); err != nil || holder != "" {
		t.Errorf("without a lease: held by %q, %v", holder, err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "modelbox-controller"}}
	lease.Spec = leaseSpec("pod-1", time.Now(), 60)
	if err := c.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if holder, err := LeaseHolder(t.Context(), c, Namespace); err != nil || holder != "pod-1" {
		t.Errorf("held by %q, %v, want pod-1", holder, err)
	}
	if err := c.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}

// deleteNamespace deletes a namespace without objects. No controller does so here.
func deleteNamespace(t *testing.T, c client.Client, namespace *corev1.Namespace) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	err := c.Delete(ctx, namespace)
	if err == nil {
		err = c.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	}
	if err == nil {
		namespace.Spec.Finalizers = nil
		err = c.SubResource("finalize").Update(ctx, namespace)
	}
	if err != nil {
		t.Error(err)
	}
}

func leaseSpec(holder string, renewed time.Time, seconds int32) coordinationv1.LeaseSpec {
	return coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: &seconds}
}

func TestHeldBy(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		spec coordinationv1.LeaseSpec
		want string
	}{
		"a lease that was never held":     {coordinationv1.LeaseSpec{}, ""},
		"a lease that was released":       {leaseSpec("", now, 1), ""},
		"a holder that renewed":           {leaseSpec("pod", now.Add(-7*time.Second), 7), "pod"},
		"a holder that was killed before": {leaseSpec("pod", now.Add(-7001*time.Millisecond), 7), ""},
		"a lease without a duration":      {coordinationv1.LeaseSpec{HolderIdentity: new("pod"), RenewTime: &metav1.MicroTime{Time: now.Add(-time.Second)}}, ""},
	} {
		if got := heldBy(&coordinationv1.Lease{Spec: test.spec}, now); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestRemovalNamesTheLabel(t *testing.T) {
	t.Parallel()
	want := "[delete mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicybindings,validatingadmissionpolicies -l modelbox-operator/run]"
	if got := fmt.Sprint(Removal()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
