// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	domain "github.com/modelbox-operator/modelbox-operator/kinds"
)

const (
	scaledObject = "ScaledObject"
	deployment   = "Deployment"
)

// actorKinds are the kinds of objects that act on a Deployment, or scale an object.
var actorKinds = []schema.GroupVersionKind{
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
	{Group: "keda.sh", Version: "v1alpha1", Kind: scaledObject},
	modelv1.SchemeGroupVersion.WithKind("ModelBox"),
	appv1.SchemeGroupVersion.WithKind("App"),
	extensionv1.SchemeGroupVersion.WithKind("UnitedDeployment"),
	mtsrev1.SchemeGroupVersion.WithKind("Eru"),
}

// actor is an object that acts on another one.
type actor struct {
	kind, name string
	// targetKind and target name the other one.
	targetKind, target string
}

func actorOf(obj *unstructured.Unstructured) actor {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(obj.Object, fields...) // Another type names nothing.
		return value
	}
	a := actor{kind: obj.GetKind(), name: obj.GetName(), targetKind: deployment, target: obj.GetName()}
	switch a.kind {
	case "HorizontalPodAutoscaler", scaledObject:
		a.targetKind = cmp.Or(text("spec", "scaleTargetRef", "kind"), deployment)
		a.target = text("spec", "scaleTargetRef", "name")
	case "UnitedDeployment", "Eru":
		a.target = cmp.Or(text("spec", "deploymentName"), text("spec", "deploymentname"), a.target)
	}
	return a
}

// conflicts adds what else acts on an object, or on its Deployment, and would undo what it does, or
// what the apply does.
func (p *Planner) conflicts(ctx context.Context, o *Object, target string) error {
	if o.kind.OnNodes() {
		return nil // It has no Deployment.
	}
	actors, err := p.actorsIn(ctx, o.Namespace)
	_, replicas, _ := unstructured.NestedFieldNoCopy(o.manifest.Object, "spec", "replicas")
	for _, a := range actors {
		say := func(format string, args ...any) {
			o.Conflicts = append(o.Conflicts, fmt.Sprintf("%s %q ", a.kind, a.name)+fmt.Sprintf(format, args...))
		}
		switch on := a.targetKind == deployment && a.target == target; {
		case a.kind == o.Kind && a.name == o.Name, (a.kind == "Eru") != (o.Kind == "Eru"):
		case on && o.Kind == "Eru":
			say("restarts Deployment %q as well", target)
		case on:
			say("sets the replicas of Deployment %q as well: use only one of them", target)
		case replicas && a.targetKind == o.Kind && a.target == o.Name:
			say("scales this %s, and the manifest sets spec.replicas, so each apply undoes the scaling: remove the field", o.Kind)
		}
	}
	return err
}

// Actors returns what acts on a Deployment other than by restarts, in sentences, without the object
// of a kind that has the name of the Deployment, and without what this object adopts; and what could not be listed.
func Actors(ctx context.Context, c client.Client, of client.ObjectKey, kind string, adopted ...client.Object) (acting, hidden []string, err error) {
	p := &Planner{Client: c, actors: map[string][]actor{}}
	actors, err := p.actorsIn(ctx, of.Namespace)
	for _, a := range actors {
		if slices.ContainsFunc(adopted, func(o client.Object) bool { return domain.KindOf(o) == a.kind && o.GetName() == a.name }) {
			continue
		}
		if a.targetKind == deployment && a.target == of.Name && a.kind != "Eru" && (a.kind != kind || a.name != of.Name) {
			acting = append(acting, fmt.Sprintf("%s %q acts on Deployment %q: let it act on the %s of this name first, or delete it", a.kind, a.name, of.Name, kind))
		}
	}
	return acting, p.hidden, err
}

// actorsIn returns the actors in a namespace.
func (p *Planner) actorsIn(ctx context.Context, namespace string) ([]actor, error) {
	if known, ok := p.actors[namespace]; ok {
		return known, nil
	}
	for _, gvk := range actorKinds {
		list, err := p.list(ctx, gvk, namespace)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if owner := metav1.GetControllerOf(&list.Items[i]); owner == nil || owner.Kind != scaledObject { // Of those, KEDA's own object counts.
				p.actors[namespace] = append(p.actors[namespace], actorOf(&list.Items[i]))
			}
		}
	}
	return p.actors[namespace], nil
}

// list returns the objects of a kind in a namespace, those of the manifests in the place of the
// stored ones.
func (p *Planner) list(ctx context.Context, gvk schema.GroupVersionKind, namespace string) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := p.Client.List(ctx, list, client.InNamespace(namespace))
	switch {
	case apierrors.IsForbidden(err):
		p.hidden = append(p.hidden, err.Error())
	case err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err): // It is not installed.
		return nil, fmt.Errorf("listing each %s: %w", gvk.Kind, err)
	}
	for _, m := range p.manifests {
		if m.GroupVersionKind().GroupKind() == gvk.GroupKind() && m.GetNamespace() == namespace {
			list.Items = slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool { return u.GetName() == m.GetName() })
			list.Items = append(list.Items, *m)
		}
	}
	return list, nil
}
