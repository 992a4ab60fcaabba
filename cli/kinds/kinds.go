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

	"github.com/pmezard/go-difflib/difflib"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	crds "github.com/modelbox-operator/modelbox-operator/config/crd"
	appchildren "github.com/modelbox-operator/modelbox-operator/controller/app"
	genericdaemonchildren "github.com/modelbox-operator/modelbox-operator/controller/genericdaemon"
	modelboxchildren "github.com/modelbox-operator/modelbox-operator/controller/modelbox"
	domain "github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/app"
	"github.com/modelbox-operator/modelbox-operator/kinds/around"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
	"github.com/modelbox-operator/modelbox-operator/kinds/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/kinds/uniteddeployment"
)

// Kind is one of the five kinds.
type Kind struct {
	GVK schema.GroupVersionKind
	// New returns an empty object of the kind.
	New func() client.Object
	// Default sets the defaults of an object and records them. old is the object that it updates, nil
	// for a new one; see domain.Kind. In a cluster with sizes it returns the errors that only these show.
	Default func(obj, old client.Object, sizes modelbox.Sizes, ops *patch.Ops) field.ErrorList
	// Stored sets the defaults of a stored object in memory, as its controller does.
	Stored func(client.Object)
	// Validate returns all errors of an object with its defaults, of an update those that it adds, and Warn what
	// is risky in it. It may set the defaults of old, which is nil for a new object.
	Validate func(obj, old client.Object) field.ErrorList
	Warn     func(client.Object) []string
	// Children returns the desired children of an object that has its defaults and no
	// errors, of which the pods may fetch a model. It is nil for a kind that has no children.
	Children func(client.Object, modelsource.Fetcher) ([]client.Object, error)
	// CRD returns the kind's CRD, which must not be changed.
	CRD func() *apiextensionsv1.CustomResourceDefinition
}

// All are the five kinds.
var All = []*Kind{
	withSizes(kind(modelbox.Kind(), modelboxchildren.Children)),
	kind(app.Kind(), withoutModel(appchildren.Children)),
	kind(genericdaemon.Kind(), withoutModel(genericdaemonchildren.Children)),
	kind(uniteddeployment.Kind(), nil),
	kind(eru.Kind(), nil),
}

func withSizes(k *Kind) *Kind {
	k.Stored = func(obj client.Object) { modelbox.DefaultStored(obj.(*modelv1.ModelBox)) }
	withoutSizes := k.Default
	k.Default = func(obj, old client.Object, sizes modelbox.Sizes, ops *patch.Ops) field.ErrorList {
		if sizes == nil {
			return withoutSizes(obj, old, nil, ops)
		}
		was, _ := old.(*modelv1.ModelBox) // It is nil if there is none.
		return modelbox.Admit(obj.(*modelv1.ModelBox), was, sizes, ops)
	}
	return k
}

// withoutModel returns the children of a kind whose pods fetch no model.
func withoutModel[P any](children func(P) ([]client.Object, error)) func(P, modelsource.Fetcher) ([]client.Object, error) {
	return func(obj P, _ modelsource.Fetcher) ([]client.Object, error) { return children(obj) }
}

// object is a pointer to a kind's type.
type object[T any] interface {
	domain.Object[T]
	client.Object
}

// kind returns a kind. Its controller sets the defaults of a new object.
func kind[T any, P object[T]](k domain.Kind[T], children func(P, modelsource.Fetcher) ([]client.Object, error)) *Kind {
	out := &Kind{
		GVK: k.GVK,
		New: func() client.Object { return P(new(T)) },
		Default: func(obj, old client.Object, _ modelbox.Sizes, ops *patch.Ops) field.ErrorList {
			was, _ := old.(P) // It is nil if there is none.
			k.Default(obj.(P), was, ops)
			return nil
		},
		Stored: func(obj client.Object) { k.Default(obj.(P), nil, nil) },
		Validate: func(obj, old client.Object) field.ErrorList {
			errs := k.Validate(obj.(P))
			was, isUpdate := old.(P)
			if isUpdate && len(errs) > 0 {
				k.Default(was, nil, nil)
				errs = rules.Added(errs, k.Validate(was))
			}
			if isUpdate && k.Immutable != nil {
				errs = append(errs, k.Immutable(obj.(P), was)...)
			}
			return errs
		},
		Warn: func(obj client.Object) []string { return k.Warn(obj.(P), nil) },
		CRD:  sync.OnceValue(func() *apiextensionsv1.CustomResourceDefinition { return crdOf(k.GVK) }),
	}
	if children != nil {
		out.Children = func(obj client.Object, fetcher modelsource.Fetcher) ([]client.Object, error) {
			return children(obj.(P), fetcher)
		}
	}
	return out
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
	var all []string
	for _, k := range All {
		names := append([]string{k.Resource(), k.Singular()}, k.CRD().Spec.Names.ShortNames...)
		if (group == "" || group == k.GVK.Group || group == k.GVK.Version+"."+k.GVK.Group) && slices.Contains(names, resource) {
			return k, nil
		}
		all = append(all, k.Singular())
	}
	return nil, fmt.Errorf("%q is none of the operator's kinds: use one of %s", name, strings.Join(all, ", "))
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

// Match returns the kind of an object, nil if it is none of the five. The error is kubectl's for a kind that the
// cluster does not have, with the way out, for what has the group, or without a group the name, of one of the five, and
// for what looks like one of them.
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

// Likeness returns how much two names have in common, whatever the case of their letters: from 0 to 1.
func Likeness(a, b string) float64 {
	return difflib.NewMatcher(strings.Split(strings.ToLower(a), ""), strings.Split(strings.ToLower(b), "")).Ratio()
}

// ChildKinds returns an empty object, with its kind, of each kind of which an object with pods may have a child. The
// first one runs the pods.
func (k *Kind) ChildKinds() []client.Object {
	if k.Singular() == "genericdaemon" {
		return []client.Object{&appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}}}
	}
	out := []client.Object{
		&appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}},
		&corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}},
	}
	for _, block := range around.Blocks {
		child := block.New()
		child.GetObjectKind().SetGroupVersionKind(block.Kind)
		out = append(out, child)
	}
	return out
}

// Workload reports whether a kind has pods of its own, and so can be paused.
func (k *Kind) Workload() bool { return k.Children != nil }

// WorkloadOf returns the name of the Deployment, or of the DaemonSet, that an object has or acts on.
func WorkloadOf(obj client.Object) string {
	switch obj := obj.(type) {
	case *extensionv1.UnitedDeployment:
		return obj.Spec.DeploymentName
	case *mtsrev1.Eru:
		return obj.DeploymentNameOrDefault()
	}
	return obj.GetName()
}

// Unstructured returns an empty object of the kind, which keeps the fields that this release does not know.
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
