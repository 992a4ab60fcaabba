//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// serverManifest is a ModelBox with a name and further fields.
const serverManifest = `
apiVersion: model.github.com/v1
kind: ModelBox
metadata:
  name: %s
spec:
  resourceType: custom
  imagePullPolicy: IfNotPresent
  terminationGracePeriodSeconds: 0
`

// server returns the manifest of a ModelBox; fields are those of its spec, in YAML.
func server(name, fields string) string {
	return fmt.Sprintf(serverManifest, name) + "  " + strings.ReplaceAll(strings.TrimSpace(fields), "\n", "\n  ") + "\n"
}

// problemCase is a ModelBox whose pods cannot become ready, the reason of Ready, and parts of its message.
type problemCase struct {
	ns, name, fields, reason string
	message                  []string
}

// told tells whether the status of the ModelBox says it.
func (c problemCase) told(ctx context.Context) bool {
	GinkgoHelper()
	box := get(ctx, &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: c.ns, Name: c.name}})
	ready := meta.FindStatusCondition(box.Status.Conditions, status.ConditionReady)
	if ready == nil || len(box.Status.Problems) == 0 || !meta.IsStatusConditionTrue(box.Status.Conditions, status.ConditionStalled) {
		return false
	}
	problem := box.Status.Problems[0]
	missing := func(part string) bool {
		return !strings.Contains(ready.Message, part) || !strings.Contains(problem.Message, part)
	}
	return (c.reason == "" || ready.Reason == c.reason && problem.Reason == c.reason) && !slices.ContainsFunc(c.message, missing)
}

var _ = Describe("a ModelBox of a model server", func() {
	It("is not restarted while it loads for a minute", long, func(ctx SpecContext) {
		ns := newNamespace(ctx)
		box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "slow"}}
		apply(ns, server("slow", `
image: `+nginx+`
resources: {}
command: [sh, -c, "sleep 60; exec nginx -g 'daemon off;'"]
ports: [{port: 80}]`))
		Eventually(readyCondition(ctx, box)).Should(Equal("True Ready"))
		Expect(restarts(ctx, ns, "slow")).To(BeZero())
		Expect(box.Status.Problems).To(BeEmpty())
	}, SpecTimeout(10*time.Minute))

	It("says in status why its pods are not ready, in the words of the cluster", long, func(ctx SpecContext) {
		ns := newNamespace(ctx)
		quota := newNamespace(ctx)
		run(kubectl, "-n", quota, "create", "quota", "none", "--hard=pods=0")
		cases := []problemCase{
			{ns, "image", `
image: 127.0.0.1:1/no/such:1
resources: {}`, "ImagePullBackOff", []string{"127.0.0.1:1/no/such:1"}},
			{ns, "crash", `
image: ` + busybox + `
resources: {}
command: [sh, -c, "echo no model at /models/bert >/dev/termination-log; exit 3"]`, "CrashLoopBackOff", []string{"exit code 3", "no model at /models/bert"}},
			{ns, "memory", `
image: ` + busybox + `
resources: {limits: {memory: 16Mi}}
command: [sh, -c, "tail /dev/zero"]`, "OOMKilled", []string{"16Mi"}},
			{ns, "key", `
image: ` + busybox + `
resources: {}
command: [sleep, "3600"]
envs: [{name: TOKEN, valueFrom: {secretKeyRef: {name: token, key: hub}}}]`, "CreateContainerConfigError", []string{"hub", "token"}},
			{quota, "quota", `
image: ` + busybox + `
resources: {}
command: [sleep, "3600"]`, "", []string{"exceeded quota: none"}},
		}
		run(kubectl, "-n", ns, "create", "secret", "generic", "token", "--from-literal=other=x")
		for _, c := range cases {
			apply(c.ns, server(c.name, c.fields))
		}
		for _, c := range cases { // The controller reads the pods 15 s, 45 s and 105 s after the ModelBox is not ready.
			Eventually(c.told).WithArguments(ctx).WithTimeout(5*time.Minute).Should(BeTrue(), c.name)
		}
		Eventually(func() string { return run(kubectl, "-n", ns, "get", "modelboxes") }).
			Should(And(ContainSubstring("STATUS"), ContainSubstring("CrashLoopBackOff"), ContainSubstring("CreateContainerConfigError")))

		By("removing one of the causes")
		run(kubectl, "-n", ns, "patch", "secret", "token", "--type=merge", "-p", `{"stringData":{"hub":"x"}}`)
		awaitReady(ns, "modelbox/key")
		box := get(ctx, &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "key"}})
		Expect(box.Status.Problems).To(BeEmpty())
	})

	It("completes a rollout where every accelerator is in use, without a spare one", long, func(ctx SpecContext) {
		ns := newNamespace(ctx)
		accelerators(nodes(ctx)[1].Name, 2)
		box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "gpu"}}
		manifest := func(image, strategy string) string {
			return server("gpu", `
image: `+image+`
replicas: 2
resources: {limits: {example.com/gpu: 1}}
ports: [{port: 80}]
`+strategy)
		}
		const noSpare = "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}"
		Expect(apply(ns, manifest(nginx, ""))).To(ContainSubstring("maxSurge: 0"), "the warning with the fields to set")
		Eventually(readyCondition(ctx, box)).Should(Equal("True Ready"))

		By("changing the image with the default rollout, which needs a spare accelerator")
		apply(ns, manifest(nginxOther, ""))
		Eventually(readyCondition(ctx, box)).Should(Equal("False Unschedulable"))
		Eventually(func() *metav1.Condition {
			return meta.FindStatusCondition(get(ctx, box).Status.Conditions, status.ConditionStalled)
		}).Should(HaveValue(HaveField("Message", ContainSubstring("Insufficient example.com/gpu"))))

		By("setting what the warning says")
		Expect(apply(ns, manifest(nginxOther, noSpare))).NotTo(ContainSubstring("maxSurge"))
		Eventually(readyCondition(ctx, box)).Should(Equal("True Ready"))
		Expect(imagesOf(running(ctx, ns, labelsOf("gpu")))).To(ConsistOf(nginxOther, nginxOther))

		By("changing the image again")
		apply(ns, manifest(nginx, noSpare))
		Eventually(func() []string { return imagesOf(running(ctx, ns, labelsOf("gpu"))) }).Should(ConsistOf(nginx, nginx))
		Eventually(readyCondition(ctx, box)).Should(Equal("True Ready"))
	})

	It("has the shared memory, the command and the rollout of its spec", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		apply(ns, server("shm", `
image: `+busybox+`
resources: {limits: {memory: 512Mi}}
sharedMemory: 200Mi
command: [sleep]
args: ["3600"]
strategy: {type: Recreate}`))
		run(kubectl, "-n", ns, "wait", "--for=condition=Available", "--timeout=120s", "modelbox/shm")
		size := run(kubectl, "-n", ns, "exec", "deployment/shm", "--", "df", "-m", "/dev/shm")
		Expect(size).To(MatchRegexp(`tmpfs\s+200\s`))
		Expect(refused(ns, server("shm", `
image: `+busybox+`
resources: {limits: {memory: 512Mi}}
sharedMemory: 1Gi`))).To(And(ContainSubstring("spec.sharedMemory"), ContainSubstring("512Mi")))
	})
})

// restarts returns how often the containers of the pods of a ModelBox were restarted.
func restarts(ctx context.Context, ns, name string) int32 {
	GinkgoHelper()
	var n int32
	for _, pod := range running(ctx, ns, labelsOf(name)) {
		for _, c := range pod.Status.ContainerStatuses {
			n += c.RestartCount
		}
	}
	return n
}

// accelerators adds an extended resource to a node, as a device plugin does, and removes it
// after the spec.
func accelerators(node string, n int) {
	GinkgoHelper()
	const path = "/status/capacity/example.com~1gpu"
	patch := func(operation string) {
		GinkgoHelper()
		run(kubectl, "patch", "node", node, "--subresource=status", "--type=json", "-p", operation)
	}
	patch(fmt.Sprintf(`[{"op": "add", "path": %q, "value": "%d"}]`, path, n))
	DeferCleanup(func() { patch(fmt.Sprintf(`[{"op": "remove", "path": %q}]`, path)) })
	Eventually(func() string {
		return run(kubectl, "get", "node", node, "-o", `jsonpath={.status.allocatable.example\.com/gpu}`)
	}).Should(Equal(fmt.Sprint(n)))
}
