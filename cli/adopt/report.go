// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Report says what an adoption would make of each Deployment. docs/adopt.md describes its JSON.
type Report struct {
	Deployments []Row `json:"deployments"`
	// Controlled is the number of Deployments that are left out, because objects of ours control
	// them.
	Controlled int `json:"controlled"`
	// NotConsidered says in sentences what could not be read.
	NotConsidered []string `json:"notConsidered"`
	// Hidden are the kinds of the objects that may not be listed.
	Hidden []string `json:"-"`
}

// Row is what an adoption would make of a Deployment.
type Row struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Becomes is the kind of the object, "" if there can be none, and then Refused says why.
	// WithService is that a Service is adopted as well, and Service its name.
	Becomes     string       `json:"becomes,omitempty"`
	WithService bool         `json:"withService"`
	Service     string       `json:"service,omitempty"`
	Refused     string       `json:"refused,omitempty"`
	Risks       []rules.Risk `json:"risks"`
}

var (
	deployments = appsv1.SchemeGroupVersion.WithKind("Deployment")
	services    = corev1.SchemeGroupVersion.WithKind("Service")
	claims      = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
)

// Lister calls a function with each object of a kind in a namespace, or in all if it is "".
type Lister func(ctx context.Context, gvk schema.GroupVersionKind, namespace string, each func(*unstructured.Unstructured) error) error

// InCluster lists the objects of a cluster by pages of 500.
func InCluster(c client.Reader) Lister {
	return func(ctx context.Context, gvk schema.GroupVersionKind, namespace string, each func(*unstructured.Unstructured) error) error {
		pages := pager.New(func(ctx context.Context, page metav1.ListOptions) (runtime.Object, error) {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			return list, c.List(ctx, list, client.InNamespace(namespace), client.Limit(page.Limit), client.Continue(page.Continue))
		})
		pages.PageBufferSize = 0
		return pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error { return each(item.(*unstructured.Unstructured)) })
	}
}

// InManifests lists the objects of manifests, which have namespaces: one namespace after another, as a
// cluster does.
func InManifests(objects []*unstructured.Unstructured) Lister {
	in := map[string][]*unstructured.Unstructured{}
	for _, object := range objects {
		in[object.GetNamespace()] = append(in[object.GetNamespace()], object)
	}
	return func(_ context.Context, gvk schema.GroupVersionKind, namespace string, each func(*unstructured.Unstructured) error) error {
		namespaces := []string{namespace}
		if namespace == metav1.NamespaceAll {
			namespaces = slices.Sorted(maps.Keys(in))
		}
		for _, namespace := range namespaces {
			for _, object := range in[namespace] {
				if object.GroupVersionKind() != gvk {
					continue
				}
				if err := each(object); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// content is what a namespace has beside Deployments: the Services, and the access modes of the
// claims, by their names.
type content struct {
	services map[string]*unstructured.Unstructured
	modes    map[string][]string
}

// NewReport returns the report on the Deployments in a namespace, or in all if it is "", by the kinds
// that they may become, the preferred one first. It holds what one namespace has at a time.
func NewReport(ctx context.Context, list Lister, namespace string, preferred []*kinds.Kind) (*Report, error) {
	r, in, current := &Report{Deployments: []Row{}, NotConsidered: []string{}}, (*content)(nil), ""
	err := list(ctx, deployments, namespace, func(u *unstructured.Unstructured) (err error) {
		if owner := metav1.GetControllerOf(u); owner != nil && kinds.Of(schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()) != nil {
			r.Controlled++
			return nil
		}
		if in == nil || current != u.GetNamespace() {
			current = u.GetNamespace()
			if in, err = r.content(ctx, list, current); err != nil {
				return err
			}
		}
		r.Deployments = append(r.Deployments, rowOf(u, in, preferred))
		return nil
	})
	slices.SortStableFunc(r.Deployments, func(a, b Row) int { return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) })
	return r, err
}

// content returns what a namespace has. A kind that may not be listed is left out from then on.
func (r *Report) content(ctx context.Context, list Lister, namespace string) (*content, error) {
	in := &content{map[string]*unstructured.Unstructured{}, map[string][]string{}}
	add := func(u *unstructured.Unstructured) error {
		if u.GroupVersionKind() == services {
			in.services[u.GetName()] = u
		} else {
			in.modes[u.GetName()], _, _ = unstructured.NestedStringSlice(u.Object, "spec", "accessModes") // Another type has no modes.
		}
		return nil
	}
	for _, gvk := range []schema.GroupVersionKind{services, claims} {
		if slices.Contains(r.Hidden, gvk.Kind) {
			continue
		}
		if err := list(ctx, gvk, namespace, add); apierrors.IsForbidden(err) {
			r.Hidden, r.NotConsidered = append(r.Hidden, gvk.Kind), append(r.NotConsidered, err.Error())
		} else if err != nil {
			return nil, fmt.Errorf("listing each %s: %w", gvk.Kind, err)
		}
	}
	return in, nil
}

// rowOf returns the row of a Deployment, with the Services that its adoption leaves behind.
func rowOf(u *unstructured.Unstructured, in *content, preferred []*kinds.Kind) Row {
	row, d := Row{Namespace: u.GetNamespace(), Name: u.GetName(), Risks: []rules.Risk{}}, &appsv1.Deployment{}
	if err := decode(u, d); err != nil {
		row.Refused = err.Error()
		return row
	}
	render.SetDefaults(d)
	row.Risks = append(row.Risks, rules.Risks(d, in.modes)...)
	for name := range in.services {
		row.Risks = append(row.Risks, rules.ServiceRisk(name, &d.Spec.Template.Spec)...)
	}
	left := row.adopt(d, in, preferred)
	if row.Becomes == "" {
		return row
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		row.Risks = append(row.Risks, rules.Risk{Type: services.Kind, Name: name, Message: left[name].Error()})
	}
	return row
}

// selects reports whether a Service selects the pods of a Deployment.
func selects(service *unstructured.Unstructured, d *appsv1.Deployment) bool {
	selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector") // Another type selects nothing.
	return len(selector) > 0 && labels.SelectorFromSet(selector).Matches(labels.Set(d.Spec.Template.Labels))
}

// selecting returns the names of the Services that select the pods of a Deployment, the one that has its name first.
func (in *content) selecting(d *appsv1.Deployment) (names []string) {
	for name, service := range in.services {
		if selects(service, d) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if at, found := slices.BinarySearch(names, d.Name); found {
		names = slices.Insert(slices.Delete(names, at, at+1), 0, d.Name)
	}
	return names
}

// adopt sets what a Deployment becomes, by the first kind that can have it with one of the Services that select its pods,
// or else without, and returns why the other Services are left behind.
func (row *Row) adopt(d *appsv1.Deployment, in *content, preferred []*kinds.Kind) (left map[string]error) {
	left = map[string]error{}
	try := func(s *corev1.Service) (first error) {
		for _, kind := range preferred {
			_, err := (&Adoption{}).decide(kind, nil, d, s)
			if err == nil {
				row.Becomes = kind.GVK.Kind
				return nil
			}
			first = cmp.Or(first, err)
		}
		return first
	}
	for _, name := range in.selecting(d) {
		s := &corev1.Service{}
		err := decode(in.services[name], s)
		switch {
		case row.WithService:
			err = fmt.Errorf("service %q stays as it is: an object has one Service, and this one has service %q", name, row.Service)
		case err == nil:
			render.SetDefaults(s)
			err = try(s)
		}
		if err != nil {
			left[name] = err
		} else {
			row.WithService, row.Service = true, name
		}
	}
	if row.Becomes == "" {
		if err := try(nil); err != nil {
			row.Refused = err.Error()
		}
	}
	return left
}
