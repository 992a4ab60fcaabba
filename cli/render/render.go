// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render returns what becomes of a manifest: the object with its defaults, and the
// children that the operator creates for it.
package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
)

// Object is an object as it would be stored, and its kind.
type Object struct {
	Kind *kinds.Kind
	// Stored is the object without what the API server adds to each: uid, generation, times.
	Stored *unstructured.Unstructured
	// Fetcher is what the operator decides of the container that fetches a model: its defaults,
	// without mirrors, unless it is set.
	Fetcher modelsource.Fetcher
}

// New returns an object of the response to its creation. It has the namespace that its
// manifest has, and that may be none.
func New(kind *kinds.Kind, stored *unstructured.Unstructured, namespace string) Object {
	stored = stored.DeepCopy()
	for _, field := range []string{"uid", "creationTimestamp", "generation"} {
		unstructured.RemoveNestedField(stored.Object, "metadata", field)
	}
	stored.SetNamespace(namespace)
	return Object{kind, stored, modelsource.Fetcher{Image: version.ControllerImage}}
}

// Children returns the children for an object with a uid, which is in their controller
// references. A kind without children has none.
func (o Object) Children(uid types.UID) ([]client.Object, error) {
	if o.Kind.Children == nil {
		return nil, nil
	}
	owner := o.Kind.New()
	if err := create.Into(o.Stored, owner); err != nil {
		return nil, err
	}
	owner.SetUID(uid)
	children, err := o.Kind.Children(owner, o.Fetcher)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", o.Kind.GVK.Kind, o.Stored.GetName(), err)
	}
	return children, nil
}

// ControlledBy reports whether a live child belongs to the owner of a desired one.
func ControlledBy(live, desired client.Object) bool {
	a, b := metav1.GetControllerOf(live), metav1.GetControllerOf(desired)
	return a != nil && b != nil && a.UID == b.UID
}

// Diff returns the unified diff of two objects as YAML, "" if they are equal. Either may be
// nil. Fields that change with every write are left out.
func Diff(name string, before, after client.Object) (string, error) {
	from, err := document(before)
	if err != nil {
		return "", err
	}
	to, err := document(after)
	if err != nil {
		return "", err
	}
	return Unified(name+" (live)", name+" (desired)", from, to)
}

// Unified returns the unified diff of two texts, "" if they are equal.
func Unified(from, to, before, after string) (string, error) {
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: slices.Collect(strings.Lines(before)), B: slices.Collect(strings.Lines(after)), FromFile: from, ToFile: to, Context: 3,
	})
}

func document(obj client.Object) (string, error) {
	if obj == nil {
		return "", nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return "", err
	}
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	delete(content, "status")
	text, err := yaml.Marshal(content)
	return string(text), err
}
