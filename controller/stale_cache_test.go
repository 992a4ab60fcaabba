// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/eru"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// lagging is a client whose cache has an old version of one object.
type lagging[T interface {
	client.Object
	DeepCopyInto(T)
}] struct {
	client.Client
	cached T
}

func (l lagging[T]) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if into, ok := obj.(T); ok && key == client.ObjectKeyFromObject(l.cached) {
		l.cached.DeepCopyInto(into)
		return nil
	}
	return l.Client.Get(ctx, key, obj, opts...)
}

// A list from an API server that is behind, or a watch that is, has an old version of an object.
// A decision that is based on it must not change another object.
var _ = Describe("an object of the cache that is older than the stored one", Ordered, func() {
	BeforeAll(func() {
		stop() // Only this spec may reconcile.
		DeferCleanup(start)
	})
	ctx := context.Background()
	var named metav1.ObjectMeta
	BeforeEach(func() { named = metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"} })

	It("does not scale the Deployment of a changed UnitedDeployment", func() {
		existing(ctx, named)
		ud := united(named, "holder", 3)
		Expect(env.Client.Create(ctx, ud)).To(Succeed())
		cached := ud.DeepCopy()
		change(ctx, ud, func(u *extensionv1.UnitedDeployment) { u.Spec.Replicas = new(int32(5)) })
		err := reconcileUnited(ctx, lagging[*extensionv1.UnitedDeployment]{env.Client, cached}, ud)
		Expect(err).NotTo(HaveOccurred(), "the watch event is the retry")
		Expect(*get(ctx, &appsv1.Deployment{ObjectMeta: named}).Spec.Replicas).To(BeEquivalentTo(1))

		Expect(reconcileUnited(ctx, env.Client, ud)).To(Succeed())
		Expect(*get(ctx, &appsv1.Deployment{ObjectMeta: named}).Spec.Replicas).To(BeEquivalentTo(5))
	})

	It("does not scale either if the status that it would write is stored already", func() {
		existing(ctx, named)
		ud := united(named, "holder", 3)
		Expect(env.Client.Create(ctx, ud)).To(Succeed())
		Expect(reconcileUnited(ctx, refusing(errDied, func(verb string, _ any) bool { return verb == "scale" }), ud)).To(MatchError(errDied))
		cached := get(ctx, ud).DeepCopy()
		Expect(cached.Status.Conditions).NotTo(BeEmpty())
		Expect(env.Client.Patch(ctx, ud, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`)))).To(Succeed())
		err := reconcileUnited(ctx, lagging[*extensionv1.UnitedDeployment]{env.Client, cached}, ud)
		Expect(err).NotTo(HaveOccurred(), "the watch event is the retry")
		Expect(*get(ctx, &appsv1.Deployment{ObjectMeta: named}).Spec.Replicas).To(BeEquivalentTo(1))
	})

	It("does not restart the Deployment of a disabled Eru", func() {
		existing(ctx, named)
		rollOut(ctx, named)
		obj := &mtsrev1.Eru{ObjectMeta: named, Spec: mtsrev1.EruSpec{Enabled: true, Schedule: "* * * * *"}}
		Expect(env.Client.Create(ctx, obj)).To(Succeed())
		cached := obj.DeepCopy()
		change(ctx, obj, func(o *mtsrev1.Eru) { o.Spec.Enabled = false })
		restarts := func(c client.Client) (string, error) {
			recorder := events.NewFakeRecorder(100)
			r := &eru.Reconciler{Client: c, Recorder: recorder, Clock: ahead{}}
			_, err := status.RecordedWithWriteAhead(c, recorder, r).Reconcile(ctx, requestFor(obj))
			return get(ctx, &appsv1.Deployment{ObjectMeta: named}).Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"], err
		}
		restartedAt, err := restarts(lagging[*mtsrev1.Eru]{env.Client, cached})
		Expect(err).NotTo(HaveOccurred(), "the watch event is the retry")
		Expect(restartedAt).To(BeEmpty())

	})

	It("does not give its status to an object that was created again", func() {
		box := &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
		again := box.DeepCopy()
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		cached := box.DeepCopy()
		Expect(env.Client.Delete(ctx, box)).To(Succeed())
		Expect(env.Client.Create(ctx, again)).To(Succeed())
		err := reconcileWith(ctx, lagging[*modelv1.ModelBox]{env.Client, cached}, cached, "ModelBox")
		Expect(err).NotTo(HaveOccurred(), "the watch event is the retry")
		Expect(get(ctx, again).Status).To(BeZero())
	})
})
