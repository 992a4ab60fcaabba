// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// transitions are values that a spec changes between, each of one kind: "" is none of them.
var transitions = []struct {
	name, kind string
	values     []string
}{
	{"the strategy", "ModelBox", []string{
		``, `strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}`, `strategy: {type: Recreate}`, `strategy: {}`,
		`strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0}}`, `rollingUpdate: 2`,
	}},
	{"sharedMemory", "ModelBox", []string{
		``, `sharedMemory: 1Gi`, `sharedMemory: 2048Mi`,
		`podTemplate: {spec: {containers: [{name: box, volumeMounts: [{name: shared-memory, mountPath: /dev/shm}]}], volumes: [{name: shared-memory, emptyDir: {}}]}}`,
		`{sharedMemory: 1Gi, podTemplate: {spec: {containers: [{name: box, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, emptyDir: {}}]}}}`,
	}},
	{"imagePullSecrets", "ModelBox", []string{
		``, `imagePullSecrets: [{name: a}]`, `imagePullSecrets: [{name: b}, {name: a}]`, `podTemplate: {spec: {imagePullSecrets: [{name: a}, {name: c}]}}`,
	}},
	{"the command", "ModelBox", []string{
		``, `{command: [a], args: [b, c]}`, `args: [c]`, `podTemplate: {spec: {containers: [{name: box, command: [d], args: [e]}]}}`,
	}},
	{"the other fields of a pod", "ModelBox", []string{
		``, `{imagePullPolicy: Always, terminationGracePeriodSeconds: 0, progressDeadlineSeconds: 4}`,
		`{imagePullPolicy: Never, terminationGracePeriodSeconds: 30, progressDeadlineSeconds: 601}`,
		`podTemplate: {spec: {terminationGracePeriodSeconds: 5, containers: [{name: box, imagePullPolicy: Always}]}}`,
	}},
	{"the fields of an App", "App", []string{
		``, `{command: [a], imagePullSecrets: [{name: a}], envFrom: [{secretRef: {name: a}}, {configMapRef: {name: b}}], progressDeadlineSeconds: 1}`,
		`{args: [a], imagePullPolicy: Always, imagePullSecrets: [{name: b}], envFrom: [{configMapRef: {name: b}}]}`,
		`podTemplate: {spec: {imagePullSecrets: [{name: a}], containers: [{name: box, args: [b], envFrom: [{secretRef: {name: c}}]}]}}`,
	}},
}

// transitioning returns an object with one of the values.
func transitioning(kind, namespace, value string) client.Object {
	GinkgoHelper()
	named := metav1.ObjectMeta{Namespace: namespace, Name: "box"}
	read := func(spec any) {
		Expect(yaml.UnmarshalStrict([]byte(value), spec)).To(Succeed(), value)
	}
	if kind == "App" {
		app := &appv1.App{ObjectMeta: named, Spec: appv1.AppSpec{Image: "server:1"}}
		read(&app.Spec)
		return app
	}
	box := &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{Image: "server:1"}}
	read(&box.Spec)
	return box
}

// everyPair returns a walk through n values that changes each of them to each other one.
func everyPair(n int) []int {
	walk := []int{0}
	for a := range n {
		for b := a + 1; b < n; b++ {
			walk = append(walk, a, b, a)
		}
	}
	return slices.Compact(walk)
}

var _ = Describe("a change of a spec", Ordered, func() {
	BeforeAll(func() {
		stop() // Only this spec may reconcile.
		DeferCleanup(start)
	})

	// reconciled returns the Deployment after one reconcile of a controller that has just
	// started, and the number of writes to children.
	reconciled := func(ctx context.Context, obj client.Object) (*appsv1.Deployment, int) {
		GinkgoHelper()
		requests, _, err := drive().reconcile(ctx, obj)
		Expect(err).NotTo(HaveOccurred())
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
		return get(ctx, deployment), requests["create"] + requests["delete"] + requests["patch"] + requests["apply"]
	}

	for _, t := range transitions {
		It("leads to the Deployment of a new object by one write: "+t.name, func(ctx context.Context) {
			var fresh []appsv1.DeploymentSpec
			for _, value := range t.values {
				obj := transitioning(t.kind, newNamespace(), value)
				Expect(env.Client.Create(ctx, obj)).To(Succeed(), value)
				deployment, _ := reconciled(ctx, obj)
				fresh = append(fresh, deployment.Spec)
			}
			obj := transitioning(t.kind, newNamespace(), t.values[0])
			Expect(env.Client.Create(ctx, obj)).To(Succeed())
			reconciled(ctx, obj)
			from := 0
			for i, to := range everyPair(len(t.values)) {
				next := transitioning(t.kind, obj.GetNamespace(), t.values[to])
				next.SetResourceVersion(get(ctx, obj).GetResourceVersion())
				Expect(env.Client.Update(ctx, next)).To(Succeed())
				deployment, writes := reconciled(ctx, next)
				Expect(equality.Semantic.DeepEqual(deployment.Spec, fresh[to])).To(BeTrue(),
					"change %d, to %q:\n%+v\nwant:\n%+v", i, t.values[to], deployment.Spec, fresh[to])
				switch same := equality.Semantic.DeepEqual(fresh[from], fresh[to]); {
				case i <= 1: // The first apply is preceded by a change of the field managers, because a create is no apply.
				case same:
					Expect(writes).To(BeNumerically("<=", 1), "change %d, to %q", i, t.values[to])
				default:
					Expect(writes).To(Equal(1), "change %d, to %q", i, t.values[to])
				}
				from = to
				_, writes = reconciled(ctx, next)
				Expect(writes).To(BeZero(), "at rest with %q", t.values[to])
			}
		})
	}
})
