// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds lists the five kinds with what the command needs of each: its CRD, its defaults
// and rules, and its desired children.
package kinds

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pmezard/go-difflib/difflib"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	crds "github.com/modelbox-operator/modelbox-operator/config/crd"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Kind is one of the operator's kinds.
type Kind struct {
	*all.Kind
	// CRD returns the kind's CRD, which must not be changed.
	CRD func() *apiextensionsv1.CustomResourceDefinition
}

// All are the operator's kinds.
var All = list()

func list() (out []*Kind) {
	for _, k := range all.Kinds {
		out = append(out, &Kind{Kind: k, CRD: sync.OnceValue(func() *apiextensionsv1.CustomResourceDefinition { return crdOf(k.GVK) })})
	}
	return out
}

// Default sets the defaults of an object. old is the object that it updates, nil for a new one; see
// domain.Kind. In a cluster with sizes it returns the errors that only these show.
func (k *Kind) Default(obj, old client.Object, sizes modelbox.Sizes) field.ErrorList {
	kind := k.Erased
	if sizes != nil {
		kind = all.WithSizes(func() modelbox.Sizes { return sizes })[slices.Index(all.Kinds, k.Kind)].Current()
	}
	kind.SetDefaults(obj, old)
	return kind.Refuse(obj, old)
}

// Validate returns all errors of an object with its defaults, of an update those that it adds. It
// may set the defaults of old, which is nil for a new object.
func (k *Kind) Validate(obj, old client.Object) field.ErrorList {
	errs := k.Kind.Validate(obj)
	if old == nil {
		return errs
	}
	if len(errs) > 0 {
		k.SetDefaults(old, nil)
		errs = rules.Added(errs, k.Kind.Validate(old))
	}
	return append(errs, k.Immutable(obj, old)...)
}

// Warn returns what is risky in an object.
func (k *Kind) Warn(obj client.Object) []string { return k.Kind.Warn(obj, nil, time.Now()) }

// Children returns the desired children of an object with pods that has its defaults and no errors.
// The pods may fetch a model.
func (k *Kind) Children(obj client.Object, fetcher models.Fetcher) (children []client.Object, err error) {
	desired, err := k.Workload(obj, fetcher).Children()
	for _, child := range desired {
		children = append(children, child)
	}
	return children, err
}

// crdOf returns the embedded CRD of a kind. What is embedded has been tested, so an error is
// one of the program.
func crdOf(gvk schema.GroupVersionKind) *apiextensionsv1.CustomResourceDefinition {
	files, err := fs.Glob(crds.Bases, "bases/"+gvk.Group+"_*.yaml") // A group has one kind.
	utilruntime.Must(err)
	data, err := crds.Bases.ReadFile(files[0])
	utilruntime.Must(err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	utilruntime.Must(yaml.UnmarshalStrict(data, crd))
	return crd
}

// Resource returns the plural name of the kind, such as modelboxes.
func (k *Kind) Resource() string { return k.CRD().Spec.Names.Plural }

// Singular returns the singular name of the kind, such as modelbox.
func (k *Kind) Singular() string { return strings.ToLower(k.GVK.Kind) }

// Find returns the kind with a name as kubectl takes it: singular, plural or short, with or
// without the group, in any case.
func Find(name string) (*Kind, error) {
	resource, group, _ := strings.Cut(strings.ToLower(name), ".")
	var known []string
	for _, k := range All {
		names := append([]string{k.Resource(), k.Singular()}, k.CRD().Spec.Names.ShortNames...)
		if (group == "" || group == k.GVK.Group || group == k.GVK.Version+"."+k.GVK.Group) && slices.Contains(names, resource) {
			return k, nil
		}
		known = append(known, k.Singular())
	}
	return nil, fmt.Errorf("%q is none of the operator's kinds: use one of %s", name, strings.Join(known, ", "))
}

// Of returns the kind of an object, nil if it is none of the five.
func Of(gk schema.GroupKind) *Kind {
	for _, k := range All {
		if k.GVK.GroupKind() == gk {
			return k
		}
	}
	return nil
}

// Match returns the kind of an object, nil if it is none of the five. The error is kubectl's for a
// kind that the cluster does not have, with the way out, for what has the group, or without a group
// the name, of one of the five, and for what looks like one of them.
func Match(gvk schema.GroupVersionKind) (*Kind, error) {
	for _, k := range All {
		wayOut := ""
		switch {
		case k.GVK == gvk:
			return k, nil
		case k.GVK.Kind == gvk.Kind && (gvk.Group == "" || gvk.Group == k.GVK.Group):
			wayOut = "apiVersion: " + k.GVK.GroupVersion().String()
		case k.GVK.Group == gvk.Group:
			wayOut = "kind: " + k.GVK.Kind
		case Likeness(k.GVK.Kind, gvk.Kind) > likely && Likeness(k.GVK.Group, gvk.Group) > likely:
			wayOut = "apiVersion: " + k.GVK.GroupVersion().String() + " and kind: " + k.GVK.Kind
		default:
			continue
		}
		return nil, fmt.Errorf("no matches for kind %q in version %q; set %s", gvk.Kind, gvk.GroupVersion(), wayOut)
	}
	return nil, nil
}

// likely is the likeness above which a name is likely to be another one, with a mistake.
const likely = 0.8

// Likeness returns how much two names have in common, whatever the case of their letters: from 0 to
// 1.
func Likeness(a, b string) float64 {
	return difflib.NewMatcher(strings.Split(strings.ToLower(a), ""), strings.Split(strings.ToLower(b), "")).Ratio()
}

// WorkloadOf returns the name of the Deployment, or of the DaemonSet, that an object of the kind
// has or acts on.
func (k *Kind) WorkloadOf(obj client.Object) string {
	if k.HasPods() {
		return obj.GetName()
	}
	return k.Target(obj)
}

// Unstructured returns an empty object of the kind, which keeps the fields that this release does
// not know.
func (k *Kind) Unstructured() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(k.GVK)
	return obj
}

// IsPaused reports whether an object has spec.paused.
func IsPaused(obj *unstructured.Unstructured) bool {
	paused, _, _ := unstructured.NestedBool(obj.Object, "spec", "paused") // Another type is not true.
	return paused
}

// ModelBox is the kind of ModelBoxes.
func ModelBox() *Kind { return Of(modelv1.SchemeGroupVersion.WithKind("ModelBox").GroupKind()) }
