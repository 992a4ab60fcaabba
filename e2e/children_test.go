//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// drainedManifest is a server that answers until the nodes have stopped sending requests to it.
const drainedManifest = `
apiVersion: model.github.com/v1
kind: ModelBox
metadata:
  name: drained
spec:
  image: %s
  replicas: 3
  resourceType: custom
  resources: {requests: {cpu: 10m, memory: 16Mi}}
  ports:
  - {port: 8080, targetPort: 80}
  readinessProbe:
    httpGet: {path: /, port: 80}
    periodSeconds: 1
  disruption: {maxUnavailable: 1}
  podTemplate:
    spec:
      terminationGracePeriodSeconds: 15
      containers:
      - name: drained
        lifecycle: {preStop: {sleep: {seconds: 5}}}
`

const autoscaledManifest = `
apiVersion: app.huolala.cn/v1
kind: App
metadata:
  name: web
spec:
  image: %s
  resources: {requests: {cpu: 10m, memory: 16Mi}}
  autoscaling:
    minReplicas: 2
    maxReplicas: %d
`

// namedManifest is a server whose answer is the name of the pod.
const namedManifest = `
apiVersion: app.huolala.cn/v1
kind: App
metadata:
  name: named
spec:
  image: %s
  imagePullPolicy: IfNotPresent
  replicas: 3
  command: [sh, -c, "mkdir /tmp/www && hostname >/tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www"]
  ports: [{port: 8080}]
  service: {sessionAffinity: ClientIP}
`

var _ = Describe("optional children", func() {
	It("service has fields of the Service, which go with it", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		newClient(ctx, ns)
		apply(ns, fmt.Sprintf(namedManifest, busybox))
		awaitReady(ns, "app.app.huolala.cn/named")
		app := get(ctx, &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "named"}})
		url := "http://" + app.Status.Address + "/"
		fetchable(ns, url)
		servers := func(g Gomega) int {
			names := map[string]bool{}
			for range 20 {
				name, err := fetch(ns, url)
				g.Expect(err).NotTo(HaveOccurred())
				names[name] = true
			}
			return len(names)
		}
		Eventually(servers).Should(Equal(1), "each request of a client reaches the same pod")
		run(kubectl, "-n", ns, "patch", "app.app.huolala.cn/named", "--type=merge", "-p", `{"spec":{"service":null}}`)
		Eventually(servers).Should(BeNumerically(">", 1))
	})

	It("disruption keeps the server available while a node is drained", disturbing-1, func(ctx SpecContext) {
		alone("webhook") // No other spec drains a node at the same time.
		ns := newNamespace(ctx)
		newClient(ctx, ns)
		apply(ns, fmt.Sprintf(drainedManifest, nginx))
		awaitReady(ns, "modelbox/drained")
		box := get(ctx, &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "drained"}})
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: box.ObjectMeta}
		Eventually(func() int32 { return get(ctx, budget).Status.DisruptionsAllowed }).Should(BeEquivalentTo(1))
		labels := map[string]string{"app.kubernetes.io/name": "modelbox", "app.kubernetes.io/instance": "drained"}
		// The node with most of the pods, so that more than one has to move.
		count, node := map[string]int{}, ""
		for _, name := range nodesOf(running(ctx, ns, labels)) {
			if count[name]++; count[name] > count[node] {
				node = name
			}
		}
		Expect(count[node]).To(BeNumerically(">", 1))
		url := "http://" + box.Status.Address + "/"
		fetchable(ns, url)
		DeferCleanup(func() { run(kubectl, "uncordon", node) })
		stop := fetchRepeatedly(ctx, ns, url)
		run(kubectl, "drain", node, "--pod-selector=app.kubernetes.io/instance=drained", "--timeout=200s")
		awaitReady(ns, "modelbox/drained")
		ok, failed := stop()
		Expect(failed).To(BeZero())
		Expect(ok).To(BeNumerically(">", 10))
		Expect(nodesOf(running(ctx, ns, labels))).NotTo(ContainElement(node))
	})

	It("autoscaling is a HorizontalPodAutoscaler that scales the object, and leaves its number", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		apply(ns, fmt.Sprintf(autoscaledManifest, nginx, 4))
		app := &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
		replicas := func() int32 { return *get(ctx, app).Spec.Replicas }
		Eventually(replicas).Should(BeEquivalentTo(2), "the autoscaler scales to the minimum, without metrics too")
		run(kubectl, "-n", ns, "wait", "--for=condition=AbleToScale", "--timeout=60s", "hpa/web")
		scaler := get(ctx, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: app.ObjectMeta})
		Expect(scaler.Spec.ScaleTargetRef).To(Equal(autoscalingv2.CrossVersionObjectReference{APIVersion: "app.huolala.cn/v1", Kind: "App", Name: "web"}))
		awaitReady(ns, "app.app.huolala.cn/web")

		By("there is no metrics-server, which Ready's message says")
		message := func() string {
			return meta.FindStatusCondition(get(ctx, app).Status.Conditions, status.ConditionReady).Message
		}
		Eventually(message).Should(ContainSubstring(`HorizontalPodAutoscaler "web": ScalingActive is False`))

		By("another number, and a manifest without one")
		run(kubectl, "-n", ns, "scale", "app.app.huolala.cn/web", "--replicas=3")
		apply(ns, fmt.Sprintf(autoscaledManifest, nginx, 5))
		Consistently(replicas, "20s", "1s").Should(BeEquivalentTo(3))
		Expect(apply(ns, fmt.Sprintf(autoscaledManifest, nginx, 5)+"  replicas: 4\n")).To(ContainSubstring("spec.replicas: spec.autoscaling sets it too"))

		By("without autoscaling")
		run(kubectl, "-n", ns, "patch", "app.app.huolala.cn/web", "--type=merge", "-p", `{"spec":{"autoscaling":null}}`)
		run(kubectl, "-n", ns, "wait", "--for=delete", "--timeout=60s", "hpa/web")
		deployment := get(ctx, &appsv1.Deployment{ObjectMeta: app.ObjectMeta})
		Expect([]int32{replicas(), *deployment.Spec.Replicas}).To(HaveEach(BeEquivalentTo(4)))
	})
})
