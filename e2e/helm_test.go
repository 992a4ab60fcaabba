//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// ofAUser is an object whose pods must survive whatever happens to a release.
const ofAUser = `
apiVersion: model.github.com/v1
kind: ModelBox
metadata: {name: survivor}
spec: {image: "%s", replicas: 2, ports: [{port: 80}], resourceType: custom, resources: {requests: {cpu: 10m, memory: 16Mi}}}
`

var _ = Describe("the Helm chart", Serial, removing, func() {
	It("installs, upgrades, rolls back and uninstalls the operator, and objects survive", func(ctx SpecContext) {
		DeferCleanup(func() {
			stopOperator()
			_, _ = tryHelm("uninstall", "modelbox") // There may be none after a failure.
			run(kubectl, "delete", "--ignore-not-found", "namespace", system)
		})
		removeOperator()
		run(kubectl, "create", "namespace", system)
		run(kubectl, "label", "namespace", system, "pod-security.kubernetes.io/enforce=restricted")

		By("helm install")
		Expect(helmRelease("install")).To(ContainSubstring("is installed in namespace " + system))
		awaitOperator()
		Expect(tryHelm("test", "modelbox", "--logs")).To(MatchRegexp(`modelbox-test\n(.*\n)*Phase: +Succeeded`))
		ns := newNamespace(ctx)
		apply(ns, fmt.Sprintf(ofAUser, nginx))
		awaitReady(ns, "modelbox/survivor")
		before := survivorOf(ctx, ns)
		Expect(before.pods).To(HaveLen(2))

		load := admitting(ctx, often)
		By("helm upgrade, with other values")
		helmRelease("upgrade", "--set", "controller.replicas=1", "--set", "webhook.extraArgs={--shutdown-delay=12s}", "--set", "dashboard.enabled=true")
		Expect(*operatorDeployment(ctx, "controller").Spec.Replicas).To(BeEquivalentTo(1))
		Expect(operatorDeployment(ctx, "webhook").Spec.Template.Spec.Containers[0].Args).To(Equal([]string{"--shutdown-delay=12s"}))
		run(kubectl, "-n", system, "get", "configmap", "modelbox-operator-dashboard")
		Expect(survivorOf(ctx, ns)).To(Equal(before))

		By("helm rollback")
		Expect(tryHelm("rollback", "modelbox", "1", "--wait", "--timeout=4m")).Error().NotTo(HaveOccurred())
		Expect(*operatorDeployment(ctx, "controller").Spec.Replicas).To(BeEquivalentTo(2))
		Expect(operatorDeployment(ctx, "webhook").Spec.Template.Spec.Containers[0].Args).To(BeEmpty())
		Expect(found("configmap/modelbox-operator-dashboard")).To(BeFalse())
		Expect(survivorOf(ctx, ns)).To(Equal(before))
		load.lostNone("an upgrade and a rollback of the release")

		By("helm uninstall")
		out, err := tryHelm("uninstall", "modelbox", "--wait", "--timeout=4m")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(ContainSubstring("[CustomResourceDefinition] modelboxes.model.github.com"), "it says what it leaves")
		Expect(found("deployment/modelbox-controller")).To(BeFalse())
		Expect(run(kubectl, "get", "validatingwebhookconfigurations,mutatingwebhookconfigurations,clusterroles", "-o", "name")).NotTo(ContainSubstring("modelbox-controller"))
		Expect(survivorOf(ctx, ns)).To(Equal(before))

		By("helm install again, over the CRDs that have stayed, and without cert-manager")
		run(kubectl, "-n", system, "delete", "--ignore-not-found", "secret", "modelbox-webhook-tls") // cert-manager leaves it.
		helmRelease("install", "--wait=hookOnly", "--set", "certs.mode=self-managed")
		run(kubectl, "-n", system, "wait", "--for=jsonpath={.data.tls\\.crt}", "--timeout=2m", "secret/modelbox-webhook-tls")
		awaitServed(ctx) // The pods began before the Secret had it.
		awaitOperator()
		Expect(issuer(ctx)).To(HavePrefix("modelbox-webhook-ca@"))
		Expect(survivorOf(ctx, ns)).To(Equal(before))
		run(kubectl, "-n", ns, "scale", "modelbox/survivor", "--replicas=1")
		Eventually(func() int { return len(survivorOf(ctx, ns).pods) }).Should(Equal(1), "the object is reconciled again")
	})
})

// helmRelease installs or upgrades the release of the chart in the operator's namespace, and returns what helm prints.
func helmRelease(command string, values ...string) string {
	GinkgoHelper()
	path, flags := chart()
	out, err := tryHelm(slices.Concat([]string{command, "modelbox", path, "--wait", "--timeout=4m"}, flags, values)...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

func tryHelm(args ...string) (string, error) {
	return attempt("", append([]string{helm, "--namespace", system}, args...)...)
}

// found tells whether an object of the release exists.
func found(what string) bool {
	GinkgoHelper()
	return run(kubectl, "-n", system, "get", "--ignore-not-found", "-o", "name", what) != ""
}

func operatorDeployment(ctx context.Context, process string) *appsv1.Deployment {
	GinkgoHelper()
	return get(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "modelbox-" + process}})
}

// survivor is what of a user's object must stay the same.
type survivor struct {
	object, deployment, service types.UID
	generation                  int64
	pods                        map[types.UID]string
}

func survivorOf(ctx context.Context, ns string) survivor {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: ns, Name: "survivor"}
	box := get(ctx, &modelv1.ModelBox{ObjectMeta: meta})
	s := survivor{
		object:     box.UID,
		deployment: get(ctx, &appsv1.Deployment{ObjectMeta: meta}).UID,
		service:    get(ctx, &corev1.Service{ObjectMeta: meta}).UID,
		generation: box.Generation,
		pods:       map[types.UID]string{},
	}
	pods := &corev1.PodList{}
	Expect(admin.List(ctx, pods, client.InNamespace(ns), client.MatchingLabels(labelsOf("survivor")))).To(Succeed())
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp == nil {
			s.pods[pod.UID] = fmt.Sprint(pod.Name, " restarted ", pod.Status.ContainerStatuses[0].RestartCount)
		}
	}
	return s
}
