// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/app"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/controller/modelbox"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	webhookapp "github.com/modelbox-operator/modelbox-operator/kinds/app"
	webhookgenericdaemon "github.com/modelbox-operator/modelbox-operator/kinds/genericdaemon"
	webhookmodelbox "github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
)

// reconciledObject is an object, the errors of admission, and the children that the controller
// creates for it.
type reconciledObject struct {
	object   client.Object
	errs     field.ErrorList
	children []client.Object
}

// reconcilers run the defaults, the validation and Reconcile of a kind.
var reconcilers = map[string]func(namespace string, spec map[string]any) reconciledObject{
	"ModelBox": func(namespace string, spec map[string]any) reconciledObject {
		box := &modelv1.ModelBox{}
		specInto(spec, &box.Spec)
		named(box, namespace)
		webhookmodelbox.Default(box, nil, nil)
		r := &modelbox.Reconciler{}
		return reconcileWithoutChildren(box, webhookmodelbox.Validate(box.DeepCopy()), &r.Reconciler, r.Reconcile)
	},
	"App": func(namespace string, spec map[string]any) reconciledObject {
		obj := &appv1.App{}
		specInto(spec, &obj.Spec)
		named(obj, namespace)
		webhookapp.Default(obj, nil, nil)
		r := &app.Reconciler{}
		return reconcileWithoutChildren(obj, webhookapp.Validate(obj.DeepCopy()), &r.Reconciler, r.Reconcile)
	},
	"Genericdaemon": func(namespace string, spec map[string]any) reconciledObject {
		daemon := &mydomainv1beta1.Genericdaemon{}
		specInto(spec, &daemon.Spec)
		named(daemon, namespace)
		webhookgenericdaemon.Default(daemon, nil, nil)
		r := &genericdaemon.Reconciler{}
		return reconcileWithoutChildren(daemon, webhookgenericdaemon.Validate(daemon.DeepCopy()), &r.Reconciler, r.Reconcile)
	},
}

func specInto(spec map[string]any, into any) {
	GinkgoHelper()
	data, err := json.Marshal(spec)
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(data, into)).To(Succeed(), string(data))
}

func named(obj client.Object, namespace string) {
	obj.SetNamespace(namespace)
	obj.SetName(drawnName)
	obj.SetUID("6a1e2c55-0000-4000-8000-000000000000")
}

// reconcileWithoutChildren reconciles an object with a client that has no children of it and
// stores nothing.
func reconcileWithoutChildren[T interface {
	client.Object
	DeepCopy() T
}](obj T, errs field.ErrorList, r *workload.Reconciler, reconcileOne func(context.Context, T) (reconcile.Result, error),
) reconciledObject {
	GinkgoHelper()
	creates := &creations{}
	*r = workload.Reconciler{
		Writer: apply.Writer{Client: creates, Live: creates, Recorder: events.NewFakeRecorder(100)}, Clock: clock.RealClock{},
	}
	_, err := reconcileOne(context.Background(), obj.DeepCopy())
	Expect(err).NotTo(HaveOccurred())
	return reconciledObject{object: obj, errs: errs, children: creates.made}
}

// creations is a client that has no objects, and records those that are created.
type creations struct {
	client.Client
	made []client.Object
}

func (*creations) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (c *creations) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	c.made = append(c.made, obj.DeepCopyObject().(client.Object))
	return nil
}

// apply returns the API server's error for a server-side apply of a child.
func (e *evaluator) apply(ctx context.Context, data []byte) error {
	GinkgoHelper()
	child := &unstructured.Unstructured{}
	Expect(json.Unmarshal(data, child)).To(Succeed())
	unstructured.RemoveNestedField(child.Object, "status")
	return e.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(child), client.ForceOwnership, client.FieldOwner("agreement"))
}
