// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package all lists the kinds of the operator. What has to know all of them ranges over the list:
// admission, the informer caches, the command, and the tests.
package all

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/app"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
	"github.com/modelbox-operator/modelbox-operator/kinds/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/uniteddeployment"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// Kind is one kind, with what it makes of pods. Either Workload or Target is nil.
type Kind struct {
	*kinds.Erased
	// Workload returns what the children of an object that has its defaults are made of; nil for a
	// kind without pods. fetcher is what the operator decides of a container that fetches a model.
	Workload func(obj kinds.Object, fetcher models.Fetcher) *workload.Workload
	// Target returns the name of the Deployment that an object acts on; nil for a kind with pods.
	Target func(kinds.Object) string
	// onNodes is that the pods are those of a DaemonSet.
	onNodes bool
}

// Kinds are all kinds. A new kind has a line here.
var Kinds = list(modelbox.Kind())

// WithSizes returns all kinds for the process that has the sizes of the cluster, which the function
// returns.
func WithSizes(sizes func() modelbox.Sizes) []*Kind {
	boxes := modelbox.Kind()
	boxes.Current = func() kinds.Kind[modelv1.ModelBox] { return modelbox.KindWithSizes(sizes()) }
	return list(boxes)
}

func list(boxes kinds.Kind[modelv1.ModelBox]) []*Kind {
	return []*Kind{
		withPods(kinds.Erase(boxes), modelbox.Workload),
		withPods(kinds.Erase(app.Kind()), fetchingNothing(app.Workload)),
		onNodes(withPods(kinds.Erase(genericdaemon.Kind()), fetchingNothing(genericdaemon.Workload))),
		actingOn(kinds.Erase(uniteddeployment.Kind()), func(ud *extensionv1.UnitedDeployment) string { return ud.Spec.DeploymentName }),
		actingOn(kinds.Erase(eru.Kind()), (*mtsrev1.Eru).DeploymentNameOrDefault),
	}
}

// HasPods reports whether objects of the kind have pods of their own, and so can be paused.
func (k *Kind) HasPods() bool { return k.Workload != nil }

// OnNodes reports whether the pods are those of a DaemonSet.
func (k *Kind) OnNodes() bool { return k.onNodes }

// ChildKinds returns an empty object, with its kind, of each kind of which an object with pods may
// have a child. The first one runs the pods. A kind that acts on a Deployment has only that.
func (k *Kind) ChildKinds() []kinds.Object {
	deployment := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
	switch {
	case !k.HasPods():
		return []kinds.Object{deployment}
	case k.onNodes:
		return []kinds.Object{&appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"}}}
	}
	out := []kinds.Object{deployment, &corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}}}
	for _, block := range children.Blocks {
		child := block.New()
		child.GetObjectKind().SetGroupVersionKind(block.Kind)
		out = append(out, child)
	}
	return out
}

// Of returns the kind of an object, nil if it is none of the operator's.
func Of(gk schema.GroupKind) *Kind {
	i := slices.IndexFunc(Kinds, func(k *Kind) bool { return k.GVK.GroupKind() == gk })
	if i < 0 {
		return nil
	}
	return Kinds[i]
}

func withPods[P kinds.Object](kind *kinds.Erased, of func(P, models.Fetcher) *workload.Workload) *Kind {
	return &Kind{Erased: kind, Workload: func(obj kinds.Object, fetcher models.Fetcher) *workload.Workload { return of(obj.(P), fetcher) }}
}

// fetchingNothing returns the workload of a kind whose pods fetch no model.
func fetchingNothing[P kinds.Object](of func(P) *workload.Workload) func(P, models.Fetcher) *workload.Workload {
	return func(obj P, _ models.Fetcher) *workload.Workload { return of(obj) }
}

func onNodes(kind *Kind) *Kind {
	kind.onNodes = true
	return kind
}

func actingOn[P kinds.Object](kind *kinds.Erased, target func(P) string) *Kind {
	return &Kind{Erased: kind, Target: func(obj kinds.Object) string { return target(obj.(P)) }}
}
