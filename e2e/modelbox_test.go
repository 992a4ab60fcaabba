//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// boxManifest is a ModelBox whose pods end without failed requests: preStop keeps a pod
// serving until no Service sends requests to it.
const boxManifest = `
apiVersion: model.github.com/v1
kind: ModelBox
metadata:
  name: web
spec:
  name: nginx
  image: %s
  replicas: 2
  rollingUpdate: 50%%
  resourceType: custom
  resources:
    requests: {cpu: 10m, memory: 16Mi}
  ports:
  - port: 8080
    targetPort: 80
    nodePort: 31080
  readinessProbe:
    httpGet: {path: %s, port: 80}
    periodSeconds: 1
    failureThreshold: 2
  podTemplate:
    spec:
      terminationGracePeriodSeconds: 15
      containers:
      - name: nginx
        lifecycle:
          preStop:
            sleep: {seconds: 5}
`

var _ = Describe("a ModelBox", func() {
	It("serves HTTP through its Service and its node port, during a failing and a successful rollout", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		newClient(ctx, ns)
		box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}

		By("applying it")
		Expect(apply(ns, fmt.Sprintf(boxManifest, nginx, "/"))).To(ContainSubstring("modelbox.model.github.com/web created"))
		awaitReady(ns, "modelbox/web")
		get(ctx, box)
		Expect(box.Status.Address).To(Equal("web." + ns + ".svc:8080"))
		Expect(box.Status.AvailableReplicas).To(Equal(int32(2)))

		By("sending requests to it")
		fetchable(ns, "http://"+box.Status.Address+"/")
		for _, node := range nodes(ctx) {
			fetchable(ns, fmt.Sprintf("http://%s:31080/", internalIP(node)))
		}

		By("rolling out a version that never becomes ready: the old pods continue to serve")
		stop := fetchRepeatedly(ctx, ns, "http://"+box.Status.Address+"/")
		apply(ns, fmt.Sprintf(boxManifest, nginxOther, "/no-such-page"))
		Eventually(func() []string { return imagesOf(running(ctx, ns, labelsOf("web"))) }).Should(ContainElement(nginxOther))
		Eventually(readyCondition(ctx, box)).Should(HavePrefix("False "))
		Consistently(readyCondition(ctx, box), "5s").Should(HavePrefix("False "))
		Expect(imagesOf(running(ctx, ns, labelsOf("web")))).To(ContainElement(nginx))

		By("correcting the probe: the rollout completes")
		apply(ns, fmt.Sprintf(boxManifest, nginxOther, "/"))
		awaitReady(ns, "modelbox/web")
		Eventually(func() []string { return imagesOf(running(ctx, ns, labelsOf("web"))) }).Should(ConsistOf(nginxOther, nginxOther))
		ok, failed := stop()
		AddReportEntry("requests during two rollouts", fmt.Sprintf("%d answered, %d failed", ok, failed))
		Expect(ok).To(BeNumerically(">", 30))
		Expect(failed).To(BeZero(), "of %d requests", ok+failed)
	})

	It("is scaled by kubectl scale, and recreates deleted children", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		apply(ns, strings.ReplaceAll(fmt.Sprintf(boxManifest, nginx, "/"), "nodePort: 31080", "name: http"))
		awaitReady(ns, "modelbox/web")
		run(kubectl, "-n", ns, "scale", "modelbox/web", "--replicas=3")
		Eventually(func() []corev1.Pod { return running(ctx, ns, labelsOf("web")) }).Should(HaveLen(3))
		awaitReady(ns, "modelbox/web")

		run(kubectl, "-n", ns, "delete", "deployment/web", "service/web")
		Eventually(func() error {
			_, err := attempt("", kubectl, "-n", ns, "rollout", "status", "deployment/web", "--timeout=60s")
			return err
		}).Should(Succeed())
		awaitReady(ns, "modelbox/web")

		run(kubectl, "-n", ns, "delete", "modelbox/web")
		Eventually(func() string {
			return run(kubectl, "-n", ns, "get", "deployment,service", "-o", "name")
		}).Should(BeEmpty(), "children are deleted with their owner")
	})
})

// labelsOf returns the labels of the pods of a ModelBox, or of another kind's object,
// with a name.
func labelsOf(instance string) map[string]string {
	return map[string]string{"app.kubernetes.io/instance": instance}
}

func imagesOf(pods []corev1.Pod) []string {
	var images []string
	for _, pod := range pods {
		images = append(images, pod.Spec.Containers[0].Image)
	}
	return images
}

const sizesManifest = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: modelbox-sizes
  namespace: modelbox-system
data:
  sizes.yaml: |
    sizes:
      e2e-tiny:
        resources: {limits: {cpu: 100m, memory: %s}}
        scheduling: {tolerations: [{key: e2e, operator: Exists}]}
        rollout: {maxSurge: 0, maxUnavailable: 1}
        server:
          image: %s
          command: [httpd, -f, -v]
          args: ["-p", "${port}", "-h", "${model.path}"]
          port: 8080
          readinessProbe: {httpGet: {path: /config.json}, periodSeconds: 1}
          startupSeconds: 120
`

// mutated returns the patch with which the webhook on a local port gives a new ModelBox its defaults.
func mutated(port uint16, box string) (string, error) {
	review, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			Kind:      metav1.GroupVersionKind{Group: modelv1.SchemeGroupVersion.Group, Version: modelv1.SchemeGroupVersion.Version, Kind: "ModelBox"},
			Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: []byte(box)},
		},
	})
	if err != nil {
		return "", err
	}
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	answer, err := insecure.Post(fmt.Sprintf("https://127.0.0.1:%d/mutate-model-github-com-v1-modelbox", port), "application/json", bytes.NewReader(review))
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	answered := admissionv1.AdmissionReview{}
	if err := json.NewDecoder(answer.Body).Decode(&answered); err != nil {
		return "", err
	}
	if !answered.Response.Allowed {
		return "", errors.New(answered.Response.Result.Message)
	}
	return string(answered.Response.Patch), nil
}

var _ = Describe("a size of the platform", func() {
	It("makes an object of a size and a model complete, and a changed size is that of new objects and restarts nothing", long, func(ctx SpecContext) {
		m := serveModels(newNamespace(ctx))
		ns := m.ns
		DeferCleanup(func() { run(kubectl, "-n", system, "delete", "configmap", "modelbox-sizes") })
		settled := func(memory string) {
			GinkgoHelper()
			_, err := attempt(fmt.Sprintf(sizesManifest, memory, modelsImage), kubectl, "apply", "-f", "-")
			Expect(err).NotTo(HaveOccurred())
			awaitWebhooks(ctx, func(g Gomega, port uint16) {
				g.Expect(mutated(port, `{"metadata":{"name":"new"},"spec":{"resourceType":"e2e-tiny","modelFileURL":"https://models.example.com/a.zip"}}`)).To(ContainSubstring(`"memory":"` + memory + `"`))
			})
		}
		settled("64Mi")
		sized := fmt.Sprintf(`{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: sized}, spec: {resourceType: e2e-tiny, model: {uri: "http://%s/model.tar.gz", sha256: %s}}}`,
			m.host, sumOf("model.tar.gz"))
		Eventually(func() error { // The API server may have a connection to a pod that ends, whose file is older.
			_, err := attempt(sized, kubectl, "-n", ns, "apply", "-f", "-")
			return err
		}).Should(Succeed())
		awaitReady(ns, "modelbox/sized")
		pods := running(ctx, ns, labelsOf("sized"))
		Expect(pods).To(HaveLen(1))
		Expect(pods[0].Spec.Containers[0].Resources.Requests.Memory().String()).To(Equal("64Mi"))
		Expect(pods[0].Spec.Tolerations).To(ContainElement(corev1.Toleration{Key: "e2e", Operator: corev1.TolerationOpExists}))

		By("changing the size")
		settled("80Mi")
		run(kubectl, "-n", ns, "scale", "modelbox/sized", "--replicas=2")
		Eventually(func() int { return len(running(ctx, ns, labelsOf("sized"))) }).Should(Equal(2))
		awaitReady(ns, "modelbox/sized")
		newClient(ctx, ns)
		Expect(fetch(ns, "http://sized:8080/config.json")).To(ContainSubstring("bert"))
		for _, pod := range running(ctx, ns, labelsOf("sized")) {
			Expect(pod.Spec.Containers[0].Resources.Requests.Memory().String()).To(Equal("64Mi"), pod.Name)
		}
		Eventually(func() string {
			return refused(ns, `{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: other}, spec: {image: "`+nginx+`", resourceType: e2e-none}}`)
		}).Should(ContainSubstring("e2e-tiny"))
	}, SpecTimeout(10*time.Minute))
})
