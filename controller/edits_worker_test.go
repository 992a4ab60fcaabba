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

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// errRefused reports that the API server refuses an owner, or that its status reports an error.
var errRefused = errors.New("refused")

// A worker tries owners in one namespace, one after the other.
type worker struct {
	namespace string
	number    int
}

// bring creates an owner, which replaces one of its name, and reconciles it once. It returns
// the owner and the desired children. It fails if the owner's status reports an error.
func (s *worker) bring(ctx context.Context, manifest tree) (*unstructured.Unstructured, map[string]tree, error) {
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

// own returns a manifest for the worker's namespace, with unique node ports of the lower part of
// the range, from which the API server assigns none.
func (s *worker) own(manifest tree) tree {
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
		_ = unstructured.SetNestedSlice(manifest, ports, "spec", "ports") // It was a list.
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

func (s *worker) clear(ctx context.Context, object *unstructured.Unstructured) error {
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
func (s *worker) remove(ctx context.Context, object *unstructured.Unstructured) error {
	err := env.Client.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err == nil && len(object.GetFinalizers()) > 0 {
		return env.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	}
	return client.IgnoreNotFound(err)
}

func (s *worker) reconcile(ctx context.Context, r *counter, object *unstructured.Unstructured) error {
	return reconcileWith(ctx, r.client(), object, object.GetKind())
}

// read returns a child from the API server, as stable returns it.
func (s *worker) read(ctx context.Context, kind string, of *unstructured.Unstructured) (tree, error) {
	object := child(kind, of)
	if err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, err
	}
	return object.Object, nil
}

// stable returns an object without the fields that every write changes, and without status.
func stable(object tree) tree {
	object = copied(object).(tree)
	delete(object, "status")
	for _, field := range []string{"resourceVersion", "generation", "managedFields", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(object, "metadata", field)
	}
	unstructured.RemoveNestedField(object, "metadata", "annotations", appsv1.DeprecatedTemplateGeneration)
	return object
}

// readyCondition returns the reason and message of the owner's Ready condition, and the same as
// wrong if the condition reports an error.
func readyCondition(ctx context.Context, object *unstructured.Unstructured) (wrong, said string, err error) {
	is := object.DeepCopy()
	if err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), is); err != nil {
		return "", "", err
	}
	condition := readyIn(is)
	if condition == nil {
		return "", "", nil
	}
	said = fmt.Sprintf("%v %v: %v", condition["status"], condition["reason"], condition["message"])
	if condition["status"] == "False" && condition["reason"] != status.ReasonProgressing {
		wrong = said
	}
	return wrong, said, nil
}

// readyIn returns the Ready condition in an object, nil if there is none.
func readyIn(object *unstructured.Unstructured) tree {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, in := range conditions {
		if condition, ok := in.(tree); ok && condition["type"] == status.ConditionReady {
			return condition
		}
	}
	return nil
}

// leave frees the node ports of the last owners. The owners are deleted first, because the
// controllers of the next spec would create their Services again.
func (s *worker) leave(ctx context.Context) error {
	for _, kind := range []client.Object{&modelv1.ModelBox{}, &appv1.App{}, &mydomainv1beta1.Genericdaemon{}, &corev1.Service{}} {
		if err := env.Client.DeleteAllOf(ctx, kind, client.InNamespace(s.namespace)); err != nil {
			return err
		}
	}
	return nil
}
