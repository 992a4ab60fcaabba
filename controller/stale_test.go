// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
)

var _ = Describe("a controller whose cache is behind", Ordered, ContinueOnFailure, func() {
	BeforeAll(alone)
	ctx := context.Background()
	stale := func(err error) bool { return errors.Is(err, apply.ErrStale) }
	var (
		d          *driven
		box        *modelv1.ModelBox
		deployment *appsv1.Deployment
		service    *corev1.Service
	)
	BeforeEach(func() {
		box = richBox(newNamespace())
		deployment, service = &appsv1.Deployment{ObjectMeta: box.ObjectMeta}, &corev1.Service{ObjectMeta: box.ObjectMeta}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		d = drive()
		d.settled(ctx, box)
	})
	deleteChildren := func() {
		GinkgoHelper()
		Expect(env.Client.Delete(ctx, deployment)).To(Succeed())
		Expect(env.Client.Delete(ctx, service)).To(Succeed())
	}
	absent := func(obj client.Object) {
		GinkgoHelper()
		Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Satisfy(apierrors.IsNotFound))
	}

	It("writes nothing for a deleted owner whose child was written for a newer generation", func() {
		d.behind(ctx, box)
		change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Image = "nginx:2" })
		drive().settled(ctx, box)
		Expect(env.Client.Delete(ctx, box)).To(Succeed())
		requests, result, err := d.reconcile(ctx, box)
		Expect(err).NotTo(HaveOccurred())
		Expect(result).To(Equal(reconcile.Result{}), "there is nothing to retry")
		Expect(requests).To(Equal(map[string]int{"get": 2}), "the child and its owner")
	})

	It("creates a deleted child again", func() {
		deleteChildren()
		requests, _, err := d.reconcile(ctx, box)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests).To(Equal(map[string]int{"get": 1, "create": 2}))
		Expect(*get(ctx, deployment).Spec.Replicas).To(BeEquivalentTo(2))
	})

	It("does not create children again for a deleted owner", func() {
		d.behind(ctx, box)
		Expect(env.Client.Delete(ctx, box)).To(Succeed())
		deleteChildren()
		for _, controller := range []*driven{d, drive()} {
			controller.cached = d.cached
			requests, _, err := controller.reconcile(ctx, box)
			Expect(err).NotTo(HaveOccurred())
			Expect(requests).To(Equal(map[string]int{"get": 1}))
			absent(deployment)
			absent(service)
		}
	})

	It("does not revert children to an older generation of their owner", func() {
		ahead := drive()
		d.behind(ctx, box)
		change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Image, box.Spec.Ports = "nginx:2", box.Spec.Ports[:1] })
		ahead.settled(ctx, box)
		versions := func() []string {
			return []string{get(ctx, deployment).ResourceVersion, get(ctx, service).ResourceVersion}
		}
		want := versions()
		_, _, err := d.reconcile(ctx, box)
		Expect(stale(err)).To(BeTrue(), "%v is retried", err)
		Expect(versions()).To(Equal(want))

		By("its cache of the children is behind as well")
		for round := range 2 {
			d.cached = map[client.ObjectKey]map[string]client.Object{}
			d.behind(ctx, box)
			d.behind(ctx, deployment)
			d.behind(ctx, service)
			change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Image += ".1" })
			ahead.settled(ctx, box)
			want = versions()
			By("and the owner has changed once more")
			for _, obj := range d.cached[client.ObjectKeyFromObject(box)] {
				if old, ok := obj.(*modelv1.ModelBox); ok {
					old.Spec.Image += ".old"
				}
			}
			_, _, err = d.reconcile(ctx, box)
			Expect(err).To(HaveOccurred(), "round %d", round)
			Expect(versions()).To(Equal(want))
		}

		By("the cache is up to date")
		d.cached = nil
		d.settled(ctx, box)
		Expect(versions()).To(Equal(want))
	})

	It("does not write children again if it has not seen the status that says they are written", func() {
		unseen := richBox(newNamespace())
		Expect(env.Client.Create(ctx, unseen)).To(Succeed())
		behind := drive()
		behind.behind(ctx, unseen)
		drive().settled(ctx, unseen)
		named := metav1.ObjectMeta{Namespace: unseen.Namespace, Name: unseen.Name}
		versions := func() []string {
			return []string{get(ctx, &appsv1.Deployment{ObjectMeta: named}).ResourceVersion, get(ctx, &corev1.Service{ObjectMeta: named}).ResourceVersion}
		}
		want := versions()
		_, _, err := behind.reconcile(ctx, unseen)
		Expect(stale(err)).To(BeTrue(), "%v is retried", err)
		Expect(versions()).To(Equal(want))
	})

	It("does not create a Service by an older generation of its owner", func() {
		d.behind(ctx, box)
		change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Ports = nil })
		drive().settled(ctx, box)
		absent(service)
		requests, _, err := d.reconcile(ctx, box)
		Expect(stale(err)).To(BeTrue(), "%v is retried", err)
		Expect(requests).To(Equal(map[string]int{"get": 1}))
		absent(service)
	})

	It("does not delete a Service by an older generation of its owner", func() {
		change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Ports = nil })
		d.behind(ctx, box)
		change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Ports = []modelv1.Port{{Name: "http", Port: 81}} })
		drive().settled(ctx, box)
		_, _, err := d.reconcile(ctx, box)
		Expect(stale(err)).To(BeTrue(), "%v", err)
		Expect(get(ctx, service).Spec.Ports).To(HaveLen(1))
	})

	It("writes for a new object of the name, whose generations start again", func() {
		change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Image = "nginx:2" })
		d.settled(ctx, box)
		Expect(env.Client.Delete(ctx, box)).To(Succeed())
		other := richBox(box.Namespace)
		Expect(env.Client.Create(ctx, other)).To(Succeed())
		_, _, err := d.reconcile(ctx, other)
		Expect(err).NotTo(HaveOccurred())
		Expect(ready(ctx, other).Reason).To(Equal("WaitingForDeletion"))
		deleteChildren() // As the garbage collector does.
		d.settled(ctx, other)
		Expect(metav1.IsControlledBy(get(ctx, deployment), other)).To(BeTrue())
	})
})

// A list from an API server that is behind, or a watch that is, has an old version of an object.
// A decision that is based on it must not change another object.
var _ = Describe("an object of the cache that is older than the stored one", Ordered, func() {
	BeforeAll(alone)
	ctx := context.Background()
	var named metav1.ObjectMeta
	BeforeEach(func() { named = metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"} })

	It("does not scale the Deployment of a changed UnitedDeployment", func() {
		existing(ctx, named)
		ud := united(named, "holder", 3)
		Expect(env.Client.Create(ctx, ud)).To(Succeed())
		d := drive()
		d.behind(ctx, ud)
		change(ctx, ud, func(u *extensionv1.UnitedDeployment) { u.Spec.Replicas = new(int32(5)) })
		_, _, err := d.reconcile(ctx, ud)
		Expect(err).NotTo(HaveOccurred(), "the watch event is the retry")
		Expect(*get(ctx, &appsv1.Deployment{ObjectMeta: named}).Spec.Replicas).To(BeEquivalentTo(1))

		Expect(reconcileWith(ctx, env.Client, ud)).To(Succeed())
		Expect(*get(ctx, &appsv1.Deployment{ObjectMeta: named}).Spec.Replicas).To(BeEquivalentTo(5))
	})

	It("does not scale either if the status that it would write is stored already", func() {
		existing(ctx, named)
		ud := united(named, "holder", 3)
		Expect(env.Client.Create(ctx, ud)).To(Succeed())
		Expect(reconcileWith(ctx, intercepted(func(verb string, _ any, do func() error) error {
			if verb == "scale" {
				return errDied
			}
			return do()
		}), ud)).To(MatchError(errDied))
		d := drive()
		d.behind(ctx, ud)
		Expect(ud.Status.Conditions).NotTo(BeEmpty())
		Expect(env.Client.Patch(ctx, ud, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`)))).To(Succeed())
		_, _, err := d.reconcile(ctx, ud)
		Expect(err).NotTo(HaveOccurred(), "the watch event is the retry")
		Expect(*get(ctx, &appsv1.Deployment{ObjectMeta: named}).Spec.Replicas).To(BeEquivalentTo(1))
	})

	It("does not give its status to an object that was created again", func() {
		box := &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
		again := box.DeepCopy()
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		d := drive()
		d.behind(ctx, box)
		Expect(env.Client.Delete(ctx, box)).To(Succeed())
		Expect(env.Client.Create(ctx, again)).To(Succeed())
		_, _, err := d.reconcile(ctx, box)
		Expect(err).NotTo(HaveOccurred(), "the watch event is the retry")
		Expect(get(ctx, again).Status).To(BeZero())
	})
})
