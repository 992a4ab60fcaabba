// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds lists the five kinds with what the command needs of each: its CRD, its defaults
// and rules, and its desired children.
package kinds

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	crds "github.com/modelbox-operator/modelbox-operator/config/crd"
	appchildren "github.com/modelbox-operator/modelbox-operator/controller/app"
	genericdaemonchildren "github.com/modelbox-operator/modelbox-operator/controller/genericdaemon"
	modelboxchildren "github.com/modelbox-operator/modelbox-operator/controller/modelbox"
	domain "github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/app"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
	"github.com/modelbox-operator/modelbox-operator/kinds/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/uniteddeployment"
)

// Kind is one of the five kinds.
type Kind struct {
	GVK schema.GroupVersionKind
	// New returns an empty object of the kind.
	New func() client.Object
	// Default sets the defaults of a new object and records them.
	Default func(client.Object, *patch.Ops)
	// Validate returns all errors of an object with its defaults, and Warn what is risky in it.
	Validate func(client.Object) field.ErrorList
	Warn     func(client.Object) []string
	// Children returns the desired children of an object that has its defaults and no
	// errors, of which the pods may fetch a model. It is nil for a kind that has no children.
	Children func(client.Object, modelsource.Fetcher) ([]client.Object, error)
	// CRD returns the kind's CRD, which must not be changed.
	CRD func() *apiextensionsv1.CustomResourceDefinition
}

// All are the five kinds.
var All = []*Kind{
	kind(modelbox.Kind(), modelboxchildren.Children),
	kind(app.Kind(), withoutModel(appchildren.Children)),
	kind(genericdaemon.Kind(), withoutModel(genericdaemonchildren.Children)),
	kind(uniteddeployment.Kind(), nil),
	kind(eru.Kind(), nil),
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

func kind[T any, P object[T]](k domain.Kind[T], children func(P, modelsource.Fetcher) ([]client.Object, error)) *Kind {
	out := &Kind{
		GVK:      k.GVK,
		New:      func() client.Object { return P(new(T)) },
		Default:  func(obj client.Object, ops *patch.Ops) { k.Default(obj.(P), nil, ops) },
		Validate: func(obj client.Object) field.ErrorList { return k.Validate(obj.(P)) },
		Warn:     func(client.Object) []string { return nil },
		CRD:      sync.OnceValue(func() *apiextensionsv1.CustomResourceDefinition { return crdOf(k.GVK) }),
	}
	if k.Warn != nil {
		out.Warn = func(obj client.Object) []string { return k.Warn(obj.(P)) }
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
	data, err := crds.Bases.ReadFile(fmt.Sprintf("bases/%s_%s.yaml", gvk.Group, resourceOf(gvk.Kind)))
	if err != nil {
		panic(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		panic(err)
	}
	return crd
}

// resourceOf returns the plural name of a kind.
func resourceOf(kind string) string {
	singular := strings.ToLower(kind)
	if strings.HasSuffix(singular, "x") {
		return singular + "es"
	}
	return singular + "s"
}

// Resource returns the plural name of the kind, such as modelboxes.
func (k *Kind) Resource() string { return resourceOf(k.GVK.Kind) }

// Singular returns the singular name of the kind, such as modelbox.
func (k *Kind) Singular() string { return strings.ToLower(k.GVK.Kind) }

// Is reports whether a kind is k, in any version.
func (k *Kind) Is(gk schema.GroupKind) bool { return k.GVK.GroupKind() == gk }

// Find returns the kind with a name as kubectl takes it: singular, plural or short, with or
// without the group, in any case.
func Find(name string) (*Kind, error) {
	resource, group, _ := strings.Cut(strings.ToLower(name), ".")
	for _, k := range All {
		if (group == "" || group == k.GVK.Group || group == k.GVK.Version+"."+k.GVK.Group) && k.named(resource) {
			return k, nil
		}
	}
	return nil, fmt.Errorf("%q is none of the operator's kinds: use one of %s", name, strings.Join(Names(), ", "))
}

func (k *Kind) named(name string) bool {
	return name == k.Resource() || name == k.Singular() || slices.Contains(k.CRD().Spec.Names.ShortNames, name)
}

// Names returns the singular names of the kinds.
func Names() []string {
	names := make([]string, 0, len(All))
	for _, k := range All {
		names = append(names, k.Singular())
	}
	return names
}

// Of returns the kind of an object, nil if it is none of the five.
func Of(gk schema.GroupKind) *Kind {
	for _, k := range All {
		if k.Is(gk) {
			return k
		}
	}
	return nil
}

// Ours reports whether a group is one of those of the five kinds, or a kind has the name of
// one of them and no group.
func Ours(gk schema.GroupKind) bool {
	return slices.ContainsFunc(All, func(k *Kind) bool {
		return k.GVK.Group == gk.Group || gk.Group == "" && k.GVK.Kind == gk.Kind
	})
}

// Workload reports whether a kind has pods of its own, and so can be paused.
func (k *Kind) Workload() bool { return k.Children != nil }

// ModelBox is the kind of ModelBoxes.
func ModelBox() *Kind { return Of(modelv1.SchemeGroupVersion.WithKind("ModelBox").GroupKind()) }
