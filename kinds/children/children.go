// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package children has the optional children of a ModelBox and of an App: for each block of
// modelv1.Children its rules, and the object that it becomes. All of it is pure. A block has a line
// in Blocks.
package children

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Object is what the blocks of an object are made of.
type Object struct {
	*modelv1.Children
	// Meta is the metadata of each child: name, namespace, labels and controller reference. Rules
	// need its name alone.
	Meta metav1.ObjectMeta
	// Owner is the kind of the object.
	Owner schema.GroupVersionKind
	// Selector selects its pods.
	Selector labels.Set
	Replicas int32
	Ports    []modelv1.Port
	// Resources are those of the main container.
	Resources corev1.ResourceRequirements
	// Scheduled is whether the object has schedules.
	Scheduled bool
}

// Block is a block of the spec that becomes a child.
type Block struct {
	// Field is its name in spec.
	Field string
	// Kind is that of the child.
	Kind schema.GroupVersionKind
	// Type is the Go type of the child; nil is unstructured, for a kind that is not Kubernetes'
	// own.
	Type kinds.Object
	// Provider is what a cluster has to have for the kind; empty for those of Kubernetes.
	Provider string
	// Shared is true for a kind of which a controller has an informer in any case: it is never
	// stopped.
	Shared bool
	// Desired returns the child, nil if there must be none. The object has no errors.
	Desired func(*Object) kinds.Object
	// Validate returns the errors of the block, whose path it gets.
	Validate func(*field.Path, *Object) field.ErrorList
	// Report returns what the status of the live child says against the object, in a sentence for
	// the message of Ready; empty if that is nothing. It may be nil.
	Report func(live kinds.Object) string
	// Note returns what keeps the child of the object from an effect, in a sentence for the message
	// of Ready; empty if that is nothing. It may be nil.
	Note func(*Object) string
	// Warn returns sentences on what is valid and likely to be a mistake. It may be nil.
	Warn func(*field.Path, *Object) []string
	// Status copies to the status of the object what the status of the live child says; it has
	// nothing of the block before. It may be nil.
	Status func(o *Object, live kinds.Object, into *modelv1.WorkloadStatus)
}

// Blocks are all blocks, in the order in which their children are written.
var Blocks = []*Block{
	&disruption,
	&autoscaling,
	&scaledObject,
	&route,
	&monitoring,
}

// New returns an empty child.
func (b *Block) New() kinds.Object {
	if b.Type != nil {
		return b.Type.DeepCopyObject().(kinds.Object)
	}
	child := &unstructured.Unstructured{}
	child.SetGroupVersionKind(b.Kind)
	return child
}

// unstructured returns a child of a kind that has no Go type here.
func (o *Object) unstructured(kind schema.GroupVersionKind, spec map[string]any) *unstructured.Unstructured {
	child := &unstructured.Unstructured{}
	child.SetGroupVersionKind(kind)
	child.SetName(o.Meta.Name)
	child.SetNamespace(o.Meta.Namespace)
	child.SetLabels(o.Meta.Labels)
	child.SetOwnerReferences(o.Meta.OwnerReferences)
	child.Object["spec"] = spec
	return child
}

// setText sets a member of a desired object, unless the text is empty.
func setText(in map[string]any, key, text string) {
	if text != "" {
		in[key] = text
	}
}

// Of returns the children that an object without errors must have.
func Of(o *Object) []kinds.Object {
	var out []kinds.Object
	for _, block := range Blocks {
		if child := block.Desired(o); child != nil {
			out = append(out, child)
		}
	}
	return out
}

// Validate returns the errors of the blocks of a spec.
func Validate(spec *field.Path, o *Object) field.ErrorList {
	var errs field.ErrorList
	for _, block := range Blocks {
		errs = append(errs, block.Validate(spec.Child(block.Field), o)...)
	}
	return rules.MarkIneffective(errs...)
}

// Warn returns the warnings of the blocks of a valid spec.
func Warn(spec *field.Path, o *Object) []string {
	var out []string
	for _, block := range Blocks {
		if block.Warn != nil {
			out = append(out, block.Warn(spec.Child(block.Field), o)...)
		}
	}
	return out
}
