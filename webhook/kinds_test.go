// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// sample returns the manifest of a kind in config/samples, unchanged. It can have other objects
// before that of the kind.
func sample(kind string) string {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "samples", "*_"+kind+".yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).To(HaveLen(1))
	manifest, err := os.ReadFile(files[0])
	Expect(err).NotTo(HaveOccurred())
	return string(manifest)
}

// sampleObject returns the object of the kind in its sample.
func sampleObject(kind string) *unstructured.Unstructured {
	GinkgoHelper()
	documents := strings.Split(sample(kind), "\n---\n")
	obj := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(documents[len(documents)-1]), &obj.Object)).To(Succeed())
	return obj
}

// kubectlIn runs kubectl as a user would, in a namespace.
func kubectlIn(namespace, stdin string, args ...string) string {
	GinkgoHelper()
	// A sample may name a namespace; a spec has its own.
	stdin = strings.Replace(stdin, "namespace: default", "namespace: "+namespace, 1)
	output, err := env.Kubectl(stdin, append([]string{"-n", namespace}, args...)...)
	Expect(err).NotTo(HaveOccurred())
	return output
}

var _ = Describe("every kind's sample", func() {
	manifests := map[string]func() string{
		"eru, with the deprecated name": func() string { return strings.Replace(sample("eru"), "deploymentName:", "deploymentname:", 1) },
	}
	for _, k := range all.Kinds {
		manifests[strings.ToLower(k.GVK.Kind)] = func() string { return sample(strings.ToLower(k.GVK.Kind)) }
	}
	for name, manifest := range manifests {
		DescribeTable("stays as it is when it is applied again: "+name, func(flags ...string) {
			namespace, documents := newNamespace(), strings.Split(manifest(), "\n---\n")
			kubectl := func(args ...string) string {
				GinkgoHelper()
				return kubectlIn(namespace, manifest(), append(append(args, "-f", "-"), flags...)...)
			}
			stored := func() string {
				GinkgoHelper()
				return kubectlIn(namespace, documents[len(documents)-1], "get", "-f", "-", "--show-managed-fields", "-o", "yaml")
			}
			kubectl("apply", "--validate=strict")
			before := stored()
			kubectl("apply")
			Expect(stored()).To(Equal(before))
			Expect(kubectl("diff")).To(BeEmpty())
		},
			Entry("client-side"),
			Entry("server-side", "--server-side"),
		)
	}
})

var _ = DescribeTable("an invalid object is refused at once, with the field and how to correct it",
	func(gvk schema.GroupVersionKind, spec map[string]any, want ...string) {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		obj.SetGroupVersionKind(gvk)
		obj.SetName("bad")
		obj.SetNamespace("default")
		err := env.Client.Create(context.Background(), obj)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		for _, part := range want {
			Expect(err).To(MatchError(ContainSubstring(part)))
		}
	},
	Entry("ModelBox", schema.GroupVersionKind{Group: "model.github.com", Version: "v1", Kind: "ModelBox"},
		map[string]any{"image": "A B", "replicas": -1, "resourceType": "small", "resources": map[string]any{"limits": map[string]any{"cpu": "3"}}, "serviceType": "ClusterIP",
			"ports": []any{map[string]any{"port": 80, "nodePort": 30080}}, "podTemplate": map[string]any{"spec": map[string]any{"nodeSelektor": map[string]any{}}}},
		"spec.image", "spec.replicas", "spec.resources", "spec.ports[0].nodePort", "spec.podTemplate.spec.nodeSelektor", "set resourceType: custom"),
	Entry("App", schema.GroupVersionKind{Group: "app.huolala.cn", Version: "v1", Kind: "App"},
		map[string]any{"image": "A B", "replicas": -1, "envs": []any{map[string]any{"name": "A=B"}},
			"schedules": []any{map[string]any{"name": "a", "schedule": "never", "replicas": 1}}},
		"spec.image", "spec.replicas", "spec.envs[0].name", "spec.schedules[0].schedule"),
	Entry("Genericdaemon", schema.GroupVersionKind{Group: "mydomain.com", Version: "v1beta1", Kind: "Genericdaemon"},
		map[string]any{"image": "syslog:1", "label": "a b=c", "rollingUpdate": "0%"},
		"spec.label", "spec.rollingUpdate"),
	Entry("UnitedDeployment", schema.GroupVersionKind{Group: "extension.k8s.io", Version: "v1", Kind: "UnitedDeployment"},
		map[string]any{"deploymentName": "Web", "replicas": -1, "schedules": []any{map[string]any{"name": "A", "schedule": "@daily", "replicas": -1}}},
		"spec.deploymentName", "spec.replicas", "spec.schedules[0].name", "spec.schedules[0].replicas"),
	Entry("Eru", schema.GroupVersionKind{Group: "mtsre.meitu.com", Version: "v1", Kind: "Eru"},
		map[string]any{"schedule": "0 0 30 2 *", "timeZone": "Mars/Base", "historyLimit": 101,
			"windows": []any{map[string]any{"schedule": "never", "duration": "30s"}}, "skipDates": []any{"2026-02-30"}},
		"spec.schedule", "spec.timeZone", "spec.historyLimit", "spec.windows[0].schedule", "spec.windows[0].duration", "spec.skipDates[0]"),
)

// During a rollout that adds a kind, the API server can reach a pod that does not have it yet.
var _ = It("a webhook that a process does not have is called again, on another connection", func(ctx context.Context) {
	namespace := newNamespace()
	pods := []http.Handler{webhooksOf(GinkgoTB(), all.Kinds[:1]), webhooksOf(GinkgoTB(), all.WithSizes(noSizes))}
	closed := make(chan bool, 100)
	var calls atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pods[min(calls.Add(1), 2)-1].ServeHTTP(w, r)
		closed <- w.Header().Get("Connection") == "close"
	}))
	DeferCleanup(server.Close)
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{}
	Expect(env.Client.Get(ctx, client.ObjectKey{Name: "modelbox-webhook"}, configuration)).To(Succeed())
	hook := configuration.Webhooks[slices.IndexFunc(configuration.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool {
		return w.Name == "default.uniteddeployment.extension.k8s.io"
	})]
	hook.ClientConfig = admissionregistrationv1.WebhookClientConfig{
		URL:      new(server.URL + unitedDeploymentPath),
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	hook.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}
	added := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace}, Webhooks: []admissionregistrationv1.MutatingWebhook{hook},
	}
	Expect(env.Client.Create(ctx, added)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(env.Client.Delete(ctx, added)).To(Succeed()) })
	Eventually(func() int {
		kubectlIn(namespace, sample("uniteddeployment"), "apply", "--dry-run=server", "-f", "-")
		return len(closed)
	}).Should(BeNumerically(">=", 2))
	Expect(closed).To(Receive(BeTrue()))
	Expect(closed).To(Receive(BeFalse()))
})

var _ = It("config/samples is applied by one command", func() {
	folder := filepath.Join(testenv.Root(), "config", "samples")
	DeferCleanup(func() { kubectlIn("default", "", "delete", "--ignore-not-found", "-f", folder) })
	output := kubectlIn("default", "", "apply", "--validate=strict", "-f", folder)
	for _, created := range []string{
		"app.app.huolala.cn/nginx-app", "modelbox.model.github.com/modelbox-sample", "genericdaemon.mydomain.com/syslog",
		"deployment.apps/example-deployment", "uniteddeployment.extension.k8s.io/example-united-deployment",
		"deployment.apps/opsnatmonitor-v1", "eru.mtsre.meitu.com/opsnatmonitor-v1",
	} {
		Expect(output).To(ContainSubstring(created + " created\n"))
	}
	Expect(kubectlIn("default", "", "diff", "-f", folder)).To(BeEmpty())
})
