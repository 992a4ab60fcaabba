//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
)

const adoptManifest = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  minReadySeconds: 1
  revisionHistoryLimit: 3
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      terminationGracePeriodSeconds: 15
      containers:
      - name: nginx
        image: %s
        ports:
        - {name: http, containerPort: 80}
        env:
        - {name: GREETING, value: hello}
        readinessProbe:
          httpGet: {path: /, port: http}
          periodSeconds: 1
        lifecycle:
          preStop:
            sleep: {seconds: 3}
---
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  selector: {app: web}
  ports:
  - {name: web, port: 8080, targetPort: http}
`

// untouched is what an adoption must leave as it is, as JSON: the pods, how often their containers were
// restarted, their ReplicaSets, and the addresses of the Service.
func untouched(ctx context.Context, ns string) string {
	GinkgoHelper()
	found := map[string]string{}
	for _, pod := range running(ctx, ns, map[string]string{"app": "web"}) {
		found["pod "+pod.Name] = fmt.Sprintf("%s restarted %d", pod.UID, pod.Status.ContainerStatuses[0].RestartCount)
	}
	sets := &appsv1.ReplicaSetList{}
	Expect(admin.List(ctx, sets, client.InNamespace(ns))).To(Succeed())
	for i := range sets.Items {
		found["ReplicaSet "+sets.Items[i].Name] = fmt.Sprintf("%s %d", sets.Items[i].UID, *sets.Items[i].Spec.Replicas)
	}
	service := get(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}})
	found["Service"] = fmt.Sprint(service.UID, service.Spec.ClusterIPs, service.Spec.Ports)
	text, err := json.Marshal(found)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

var _ = Describe("modelbox adopt", func() {
	It("takes over a Deployment under load, lets it go, and takes it over again, without a restart", func(ctx SpecContext) {
		modelbox := modelbox()
		ns := newNamespace(ctx)
		apply(ns, fmt.Sprintf(adoptManifest, nginx))
		run(kubectl, "-n", ns, "rollout", "status", "deployment/web", "--timeout=150s")
		// The time of a restart is in the pod template, and belongs to kubectl.
		run(kubectl, "-n", ns, "rollout", "restart", "deployment/web")
		run(kubectl, "-n", ns, "rollout", "status", "deployment/web", "--timeout=150s")
		Eventually(func() int { return len(running(ctx, ns, map[string]string{"app": "web"})) }).Should(Equal(2))
		newClient(ctx, ns)
		url := "http://web." + ns + ".svc:8080/"
		fetchable(ns, url)
		before := untouched(ctx, ns)
		stop := fetchRepeatedly(ctx, ns, url)

		for range 2 {
			Expect(run(modelbox, "adopt", "deployment/web", "service/web", "-n", ns)).To(ContainSubstring("kind: App"))
			Expect(run(modelbox, "adopt", "deployment/web", "service/web", "-n", ns, "--apply")).To(ContainSubstring("app/web resumed"))
			awaitReady(ns, "app.app.huolala.cn/web")
			Consistently(untouched, "5s", "1s").WithArguments(ctx, ns).Should(Equal(before))
			Expect(run(modelbox, "adopt", "deployment/web", "service/web", "-n", ns)).To(ContainSubstring("(unchanged)"))

			By("leaving")
			run(kubectl, "-n", ns, "delete", "app.app.huolala.cn/web", "--cascade=orphan")
			Consistently(untouched, "5s", "1s").WithArguments(ctx, ns).Should(Equal(before))
			Expect(get(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}).OwnerReferences).To(BeEmpty())
		}

		By("changing what was adopted: a rollout, as of every App")
		run(modelbox, "adopt", "deployment/web", "service/web", "-n", ns, "--apply")
		app := get(ctx, &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}})
		Expect(app.Spec.Name).To(Equal("nginx"))
		run(kubectl, "-n", ns, "patch", "app.app.huolala.cn/web", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"image":%q}}`, nginxOther))
		awaitReady(ns, "app.app.huolala.cn/web")
		Eventually(func() []string { return imagesOf(running(ctx, ns, map[string]string{"app": "web"})) }).Should(ConsistOf(nginxOther, nginxOther))
		fetchable(ns, url)

		ok, failed := stop()
		AddReportEntry("requests during three adoptions, two departures and a rollout", fmt.Sprintf("%d answered, %d failed", ok, failed))
		Expect(failed).To(BeZero())
		Expect(ok).To(BeNumerically(">", 50))
	})
})
