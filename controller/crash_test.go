// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

var errDied = errors.New("the process died")

// crashingClient is a client whose process dies at a write: before the request is sent, or
// after the write, so that its response is lost. It counts the writes.
type crashingClient struct {
	diesAt int // 0 is never; 1 is the first write.
	after  bool
	writes int
}

func (m *crashingClient) write(do func() error) error {
	m.writes++
	switch {
	case m.diesAt != m.writes:
		return do()
	case m.after:
		return errors.Join(do(), errDied)
	}
	return errDied
}

func (m *crashingClient) client() client.Client {
	return intercepted(func(_ string, _ any, do func() error) error { return m.write(do) })
}

var _ = Describe("a controller that dies at any of its writes", Ordered, func() {
	BeforeAll(alone)
	ctx := context.Background()

	type outcome struct {
		Images   []string
		Env      int
		Replicas int32
		Ports    []int32
		Reason   string
	}
	look := func(box *modelv1.ModelBox) outcome {
		GinkgoHelper()
		var seen outcome
		deployments, services := &appsv1.DeploymentList{}, &corev1.ServiceList{}
		Expect(env.Client.List(ctx, deployments, client.InNamespace(box.Namespace))).To(Succeed())
		Expect(env.Client.List(ctx, services, client.InNamespace(box.Namespace))).To(Succeed())
		for _, d := range deployments.Items {
			main := d.Spec.Template.Spec.Containers[0]
			seen.Images, seen.Env, seen.Replicas = append(seen.Images, main.Image), len(main.Env), *d.Spec.Replicas
		}
		for _, s := range services.Items {
			for _, port := range s.Spec.Ports {
				seen.Ports = append(seen.Ports, port.Port)
			}
		}
		seen.Reason = readiness(ctx, box)()
		return seen
	}

	DescribeTable("converges at the next start", func(change func(context.Context, *modelv1.ModelBox), writes int) {
		prepare := func() *modelv1.ModelBox {
			box := createBox(ctx, func(s *modelv1.ModelBoxSpec) {
				s.Ports, s.Envs = []modelv1.Port{{Port: 80}}, []corev1.EnvVar{{Name: "A", Value: "1"}}
			})
			if change != nil {
				Expect(reconcileWith(ctx, env.Client, box)).To(Succeed())
				change(ctx, box)
			}
			return box
		}
		healthy := &crashingClient{}
		box := prepare()
		Expect(reconcileWith(ctx, healthy.client(), box)).To(Succeed())
		want := look(box)
		Expect(healthy.writes).To(Equal(writes))
		for n := 1; n <= writes; n++ {
			for _, after := range []bool{false, true} {
				By(fmt.Sprintf("write %d of %d, after it: %t", n, writes, after))
				box := prepare()
				Expect(reconcileWith(ctx, (&crashingClient{diesAt: n, after: after}).client(), box)).To(MatchError(errDied))
				next := &crashingClient{}
				Expect(reconcileWith(ctx, next.client(), box)).To(Succeed())
				Expect(look(box)).To(Equal(want))
				const again = 4 // For each child that was written, the ownership of its fields, and an apply that changes nothing.
				Expect(next.writes).To(BeNumerically("<=", writes-n+1+again), "what is done is not done again")
				settled := &crashingClient{}
				Expect(reconcileWith(ctx, settled.client(), box)).To(Succeed())
				Expect(settled.writes).To(BeZero())
			}
		}
	},
		Entry("a new ModelBox: Deployment, Service, status", nil, 3),
		Entry("its first change: the ownership of fields, the Deployment, status",
			func(ctx context.Context, box *modelv1.ModelBox) {
				change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Image, b.Spec.Envs, b.Spec.Replicas = "nginx:2", nil, new(int32(4)) })
			}, 3),
		Entry("its ports gone: the Deployment twice, the Service, status",
			func(ctx context.Context, box *modelv1.ModelBox) {
				change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Ports = nil })
			}, 4),
		Entry("a child changed by another client: the ownership of fields, the Deployment, status",
			func(ctx context.Context, box *modelv1.ModelBox) {
				d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: box.Namespace, Name: box.Name}}
				change(ctx, d, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil:1" })
			}, 3),
	)
})
