// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// errRefused says that an owner is refused by the API server, or has a status that says
// that something is wrong with it.
var errRefused = errors.New("refused")

// A stage is a namespace in which one owner after the other is tried.
type stage struct {
	namespace string
	number    int
}

// bring creates an owner, which replaces one of its name, and reconciles it once. It
// returns the owner and what the operator desires. It fails if the owner's status says
// that anything is wrong.
func (s *stage) bring(ctx context.Context, manifest tree) (*unstructured.Unstructured, map[string]tree, error) {
	object := &unstructured.Unstructured{Object: s.own(manifest)}
	if err := s.clear(ctx, object); err != nil {
		return nil, nil, err
	}
	if err := env.Client.Create(ctx, object); err != nil {
		return nil, nil, err
	}
	r := newCounter()
	failed := s.reconcile(ctx, r, object)
	wrong, _, err := readyCondition(ctx, object)
	if err == nil && wrong != "" {
		err = fmt.Errorf("%w: %s", errRefused, wrong)
	}
	return object, r.created, errors.Join(err, failed)
}

// own is a manifest in the stage's namespace, with node ports of its own: they are of the
// lower part of the range, from which the API server takes none by itself.
func (s *stage) own(manifest tree) tree {
	manifest = copied(manifest).(tree)
	object := unstructured.Unstructured{Object: manifest}
	object.SetNamespace(s.namespace)
	ports, _, _ := unstructured.NestedSlice(manifest, "spec", "ports")
	for _, port := range ports {
		if number, ok := port.(tree)["nodePort"].(int64); ok {
			port.(tree)["nodePort"] = number + int64(10*s.number)
		}
	}
	if ports != nil {
		_ = unstructured.SetNestedSlice(manifest, ports, "spec", "ports") // It was one.
	}
	return manifest
}

var childKinds = map[string][]string{"ModelBox": {"Deployment", "Service"}, "App": {"Deployment", "Service"}, "Genericdaemon": {"DaemonSet"}}

func child(kind string, of *unstructured.Unstructured) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("apps/v1")
	if kind == "Service" {
		object.SetAPIVersion("v1")
	}
	object.SetKind(kind)
	object.SetNamespace(of.GetNamespace())
	object.SetName(of.GetName())
	return object
}

func (s *stage) clear(ctx context.Context, object *unstructured.Unstructured) error {
	gone := []*unstructured.Unstructured{object.DeepCopy()}
	for _, kind := range childKinds[object.GetKind()] {
		gone = append(gone, child(kind, object))
	}
	for _, object := range gone {
		if err := s.remove(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes an object, and the finalizers that an edit gave it.
func (s *stage) remove(ctx context.Context, object *unstructured.Unstructured) error {
	err := env.Client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err == nil && len(object.GetFinalizers()) > 0 {
		return env.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	}
	return client.IgnoreNotFound(err)
}

func (s *stage) reconcile(ctx context.Context, r *counter, object *unstructured.Unstructured) error {
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
	_, err := reconciler(r.client(), object.GetKind()).Reconcile(ctx, request)
	return err
}

// read is a child as it is, without what each write changes and without status.
func (s *stage) read(ctx context.Context, kind string, of *unstructured.Unstructured) (tree, error) {
	object := child(kind, of)
	if err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, err
	}
	return object.Object, nil
}

// stable is an object without what each write changes, and without its status.
func stable(object tree) tree {
	object = copied(object).(tree)
	delete(object, "status")
	for _, field := range []string{"resourceVersion", "generation", "managedFields", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(object, "metadata", field)
	}
	unstructured.RemoveNestedField(object, "metadata", "annotations", appsv1.DeprecatedTemplateGeneration)
	return object
}

// readyCondition is the owner's Ready condition in words, and the same as wrong if it
// says that the operator cannot do what it should.
func readyCondition(ctx context.Context, object *unstructured.Unstructured) (wrong, said string, err error) {
	is := object.DeepCopy()
	if err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), is); err != nil {
		return "", "", err
	}
	found, _, err := unstructured.NestedSlice(is.Object, "status", "conditions")
	if err != nil {
		return "", "", err
	}
	for _, condition := range found {
		condition := condition.(tree)
		if condition["type"] != status.ConditionReady {
			continue
		}
		said = fmt.Sprintf("%v %v: %v", condition["status"], condition["reason"], condition["message"])
		if condition["status"] == "False" && condition["reason"] != status.ReasonProgressing {
			wrong = said
		}
	}
	return wrong, said, nil
}

// leave frees the node ports that the last owners had. The owners go first, or the
// controllers of the next spec would make their Services again.
func (s *stage) leave(ctx context.Context) error {
	for _, kind := range []client.Object{&modelv1.ModelBox{}, &appv1.App{}, &mydomainv1beta1.Genericdaemon{}, &corev1.Service{}} {
		if err := env.Client.DeleteAllOf(ctx, kind, client.InNamespace(s.namespace)); err != nil {
			return err
		}
	}
	return nil
}
