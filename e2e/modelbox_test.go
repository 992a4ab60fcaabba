//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

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
		Expect(ok).To(BeNumerically(">", 100))
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

	It("restarts a container whose liveness probe fails", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		box := &modelv1.ModelBox{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sick"},
			Spec: modelv1.ModelBoxSpec{
				Image: nginx,
				Ports: []modelv1.Port{{Port: 80}},
				LivenessProbe: &corev1.Probe{
					ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/sick", Port: intstr.FromInt32(80)}},
					PeriodSeconds:    1,
					FailureThreshold: 1,
				},
				ResourceType: modelv1.ResourceTypeCustom,
				Resources:    &corev1.ResourceRequirements{},
			},
		}
		Expect(admin.Create(ctx, box)).To(Succeed())
		Eventually(func() int32 { return restarts(ctx, ns, "sick") }).Should(BeNumerically(">=", 1))
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
