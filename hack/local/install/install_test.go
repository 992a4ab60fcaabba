// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const webhooks = `---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: mutating
webhooks:
- name: a.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  matchConditions: [{name: always, expression: "true"}]
  clientConfig: {service: {name: webhook, namespace: system, path: /mutate-a}}
- name: b.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: webhook, namespace: system, path: mutate-b}, caBundle: b2xk}
---
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: validating
webhooks:
- name: c.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: webhook, namespace: system}}
`

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.example.com
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

func newClient(t *testing.T, funcs interceptor.Funcs) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(funcs).Build()
}

func mustDecode(t *testing.T, manifests string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := decode(strings.NewReader(manifests))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// namesOf returns the kind and name of each object.
func namesOf(objects []*unstructured.Unstructured) []string {
	var names []string
	for _, object := range objects {
		names = append(names, object.GetKind()+" "+object.GetName())
	}
	return names
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"bases/things.yaml": crd, "manifests.yaml": webhooks, "README.md": "not: [yaml", "empty.yaml": "# nothing\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := Load(t.Context(), "kubectl", dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"CustomResourceDefinition things.example.com", "MutatingWebhookConfiguration mutating", "ValidatingWebhookConfiguration validating",
	}
	if diff := cmp.Diff(want, namesOf(objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:1], namesOf(OfKind(objects, "CustomResourceDefinition"))); diff != "" {
		t.Errorf("CRDs (-want +got):\n%s", diff)
	}
}

func TestLoadRefusesInvalidManifests(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ file, content, want string }{
		"no YAML":            {"a.yaml", "a: [", "a.yaml"},
		"no object":          {"a.yaml", "a: 1", "no kind or no name"},
		"a list item's name": {"a.yaml", "kind: Thing", "no kind or no name"},
		"no kubectl to build a kustomization with": {"kustomization.yaml", "", "building "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, test.file), []byte(test.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(t.Context(), filepath.Join(dir, "no-kubectl"), dir)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestLoadBuildsAKustomization(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kubectl := filepath.Join(dir, "kubectl")
	script := "#!/bin/sh\n[ \"$1 $2\" = \"kustomize " + dir + "\" ] || exit 1\ncat <<'END'\n" + crd + "END\n"
	for path, content := range map[string]string{kubectl: script, filepath.Join(dir, "kustomization.yaml"): ""} {
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := Load(t.Context(), kubectl, dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"CustomResourceDefinition things.example.com"}, namesOf(objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestPointAt(t *testing.T) {
	t.Parallel()
	objects := mustDecode(t, webhooks)
	before := objects[0].DeepCopy()
	endpoint := Endpoint{URL: "https://127.0.0.1:9443", CABundle: []byte("pem")}
	var urls []string
	for _, object := range objects {
		local, err := pointAt(object, endpoint)
		if err != nil {
			t.Fatal(err)
		}
		list, _, _ := unstructured.NestedSlice(local.Object, "webhooks")
		for _, webhook := range list {
			config := webhook.(map[string]any)["clientConfig"].(map[string]any)
			if config["service"] != nil || config["caBundle"] != base64.StdEncoding.EncodeToString(endpoint.CABundle) {
				t.Errorf("clientConfig is %v", config)
			}
			urls = append(urls, config["url"].(string))
		}
	}
	want := []string{"https://127.0.0.1:9443/mutate-a", "https://127.0.0.1:9443/mutate-b", "https://127.0.0.1:9443/"}
	if diff := cmp.Diff(want, urls); diff != "" {
		t.Errorf("URLs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, objects[0]); diff != "" {
		t.Errorf("the original was changed:\n%s", diff)
	}
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	c := newClient(t, interceptor.Funcs{})
	objects := mustDecode(t, webhooks)
	// The configurations exist already, as deployed with a Service.
	for _, object := range objects {
		if err := c.Create(t.Context(), object.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	for _, url := range []string{"https://127.0.0.1:1", "https://127.0.0.1:2"} { // the first run is killed
		if _, err := RemoveLeftovers(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := NewRun(c).Webhooks(t.Context(), objects, Endpoint{URL: url, CABundle: []byte("pem")}); err != nil {
			t.Fatal(err)
		}
	}
	var got admissionregistrationv1.MutatingWebhookConfiguration
	if err := c.Get(t.Context(), client.ObjectKey{Name: "mutating-run"}, &got); err != nil {
		t.Fatal(err)
	}
	want := admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:2/mutate-a"), CABundle: []byte("pem")}
	if diff := cmp.Diff(want, got.Webhooks[0].ClientConfig); diff != "" {
		t.Errorf("clientConfig (-want +got):\n%s", diff)
	}
	if len(got.Webhooks[0].MatchConditions) != 1 {
		t.Error("the match conditions are lost")
	}

	for range 2 { // the second time there is nothing left
		if err := RemoveWebhooks(t.Context(), c, objects); err != nil {
			t.Fatal(err)
		}
	}
	var left admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := c.List(t.Context(), &left); err != nil || len(left.Items) != 1 || left.Items[0].Name != "validating-run" {
		t.Errorf("left: %v, %v, want the configuration of the run alone", left.Items, err)
	}
	if removed, err := RemoveLeftovers(t.Context(), c); err != nil || len(removed) != 2 {
		t.Errorf("removed %v, %v, want both configurations of the run", removed, err)
	}
}

func TestNothingToInstall(t *testing.T) {
	t.Parallel()
	c := newClient(t, interceptor.Funcs{})
	if err := CRDs(t.Context(), c, mustDecode(t, webhooks)); err == nil || !strings.Contains(err.Error(), "make generate") {
		t.Errorf("no CRD: got %v, want an error that names make generate", err)
	}
	err := NewRun(c).Webhooks(t.Context(), mustDecode(t, crd), Endpoint{})
	if err == nil || !strings.Contains(err.Error(), "make generate") {
		t.Errorf("no webhook configuration: got %v, want an error that names make generate", err)
	}
	if err := Policies(t.Context(), c, mustDecode(t, crd)); err == nil || !strings.Contains(err.Error(), "no ValidatingAdmissionPolicy") {
		t.Errorf("no policy: got %v, want an error that says so", err)
	}
	if err := NewRun(c).Policies(t.Context(), mustDecode(t, crd)); err == nil || !strings.Contains(err.Error(), "no ValidatingAdmissionPolicy") {
		t.Errorf("no policy for a run: got %v, want an error that says so", err)
	}
	if _, err := CompareCRDs(t.Context(), c, mustDecode(t, webhooks)); err == nil || !strings.Contains(err.Error(), "make generate") {
		t.Errorf("no CRD to compare with: got %v, want an error that names make generate", err)
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	c := newClient(t, interceptor.Funcs{})
	for _, name := range []string{"requester.yaml", "delegated.yaml"} {
		content, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "policies", name))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // as a second start does
			if err := Policies(t.Context(), c, mustDecode(t, string(content))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"modelbox-requester", "modelbox-delegated"} {
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, &admissionregistrationv1.ValidatingAdmissionPolicy{}); err != nil {
			t.Error(err)
		}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}); err != nil {
			t.Error(err)
		}
	}
}

func TestCRDsWaitsUntilEstablished(t *testing.T) {
	t.Parallel()
	reads := 0
	c := newClient(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, key, object, opts...)
			// The API server establishes it between the first and the second read.
			if reads++; reads > 1 && err == nil {
				condition := map[string]any{"type": "Established", "status": "True"}
				err = unstructured.SetNestedSlice(object.(*unstructured.Unstructured).Object, []any{condition}, "status", "conditions")
			}
			return err
		},
	})
	for range 2 { // applying them again must work too
		if err := CRDs(t.Context(), c, mustDecode(t, crd)); err != nil {
			t.Fatal(err)
		}
	}
	if reads != 3 {
		t.Errorf("%d reads, want 2 of the new and 1 of the known CRD", reads)
	}
}

func TestNamespaceExists(t *testing.T) {
	t.Parallel()
	c := newClient(t, interceptor.Funcs{})
	for range 2 {
		if err := NamespaceExists(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "modelbox-system"}, &corev1.Namespace{}); err != nil {
		t.Error(err)
	}
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "certs")
	if _, err := Certificates(dir); err != nil {
		t.Fatal(err)
	}
	caBundle, err := Certificates(dir) // as a second start does
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.Stat(filepath.Join(dir, "tls.key"))
	if err != nil || key.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode is %v, %v", key, err)
	}
	leaf, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}

	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // It would log that example.com was refused.
	server.TLS = &tls.Config{Certificates: []tls.Certificate{leaf}}
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(caBundle) {
		t.Fatal("the bundle contains no certificate")
	}
	for _, name := range []string{"127.0.0.1", "localhost", "::1"} {
		conn, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{RootCAs: roots, ServerName: name})
		if err != nil {
			t.Errorf("as %s: %v", name, err)
			continue
		}
		_ = conn.Close()
	}
	if _, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{RootCAs: roots, ServerName: "example.com"}); err == nil {
		t.Error("the certificate is valid for example.com")
	}
}
