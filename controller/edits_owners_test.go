// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/app"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/controller/modelbox"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
)

// An owner is an object of this project, as a manifest has it.
type owner struct {
	// name is the kind and the manifest's name: "modelbox/everything".
	name     string
	manifest tree
}

// readOwners reads the manifests from which the golden children are made, and the
// richer ones that the tests of edits add.
func readOwners() ([]owner, error) {
	var owners []owner
	for _, folder := range []string{"modelbox/testdata", "app/testdata", "genericdaemon/testdata", "testdata/edits"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, ".golden.yaml") {
				continue
			}
			found, err := readOwner(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			owners = append(owners, found)
		}
	}
	return owners, nil
}

func readOwner(file string) (owner, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return owner{}, err
	}
	var manifest tree
	if err := yaml.Unmarshal(data, &manifest, useInt64); err != nil {
		return owner{}, err
	}
	object := unstructured.Unstructured{Object: integer(manifest).(tree)}
	name := strings.ToLower(object.GetKind()) + "/" + strings.TrimSuffix(filepath.Base(file), ".yaml")
	return owner{name: name, manifest: object.Object}, nil
}

// A counter is a client that counts the writes that a reconciler makes and keeps what it
// creates, which is what it desires.
type counter struct {
	mu      sync.Mutex
	writes  []string
	created map[string]tree
}

func newCounter() *counter { return &counter{created: map[string]tree{}} }

func (r *counter) record(verb string, obj any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, fmt.Sprintf("%s %T", verb, obj))
}

func (r *counter) client() client.Client {
	return interceptor.NewClient(env.Client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			r.record("create", obj)
			desired, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
			if err != nil {
				return err
			}
			r.created[obj.GetObjectKind().GroupVersionKind().Kind] = desired
			return c.Create(ctx, obj, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			r.record("update", obj)
			return c.Update(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			r.record("delete", obj)
			return c.Delete(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			r.record("patch", obj)
			return c.Patch(ctx, obj, patch, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			r.record("apply", obj)
			return c.Apply(ctx, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			body, err := patch.Data(obj)
			if err != nil {
				return err
			}
			r.record("patch "+sub+" with "+string(body)+" of", obj)
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
}

// reconciler is the reconciler of a kind in a process that has just started.
func reconciler(c client.Client, kind string) reconcile.Reconciler {
	writer, seen := apply.Writer{Client: c, Live: c}, events.NewFakeRecorder(100)
	shared := workload.Reconciler{Writer: writer, Recorder: seen, Clock: clock.RealClock{}}
	switch kind {
	case "ModelBox":
		return status.Recorded[*modelv1.ModelBox](c, seen, &modelbox.Reconciler{Reconciler: shared})
	case "App":
		return status.Recorded[*appv1.App](c, seen, &app.Reconciler{Reconciler: shared})
	}
	return status.Recorded[*mydomainv1beta1.Genericdaemon](c, seen,
		&genericdaemon.Reconciler{Writer: writer, Recorder: seen, Clock: clock.RealClock{}})
}

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
		if condition["type"] != status.Ready {
			continue
		}
		said = fmt.Sprintf("%v %v: %v", condition["status"], condition["reason"], condition["message"])
		if condition["status"] == "False" && condition["reason"] != status.ReasonProgressing {
			wrong = said
		}
	}
	return wrong, said, nil
}
