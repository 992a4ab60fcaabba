// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/plan"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	domain "github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// PrepareRestored reads an object that was restored, and those of its children that were restored
// without owner references, and finds out what the operator would change of them. It writes nothing.
// Conflicts are the children that the object cannot have, or whose pods would be replaced.
func (a *Adoption) PrepareRestored(ctx context.Context, kind *kinds.Kind, key client.ObjectKey) error {
	a.Object, a.Exists, a.restored = kind.Unstructured(), true, true
	if err := a.Client.Get(ctx, key, a.Object); err != nil {
		return err
	}
	if a.Object.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s %q is being deleted", kind.Singular(), key.Name)
	}
	d, fetcher := &appsv1.Deployment{}, render.Fetcher
	if err := a.Client.Get(ctx, key, d); client.IgnoreNotFound(err) != nil {
		return err
	}
	if c := fetching(&d.Spec.Template); c != nil {
		fetcher = models.FetcherOf(c)
	}
	children, err := render.Children(kind, a.Object, fetcher)
	if err != nil {
		return err
	}
	for _, desired := range children {
		if err := a.addRestored(ctx, desired); err != nil {
			return err
		}
	}
	a.Done = len(a.children) == 0 && len(a.Conflicts) == 0
	return nil
}

// fetching returns the container of a pod template that fetches a model, nil if there is none.
func fetching(template *corev1.PodTemplateSpec) *corev1.Container {
	for i := range template.Spec.InitContainers {
		if c := &template.Spec.InitContainers[i]; models.IsFetcher(c) {
			return c
		}
	}
	return nil
}

// addRestored adds the live child that a desired one describes, if there is one that the object does not
// have yet, or why it cannot have it.
func (a *Adoption) addRestored(ctx context.Context, desired client.Object) error {
	live := domain.NewOf(desired)
	switch err := a.Client.Get(ctx, client.ObjectKeyFromObject(desired), live); {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && metav1.IsControlledBy(live, a.Object):
		return nil
	case apierrors.IsForbidden(err):
		a.Notes = append(a.Notes, "not considered: "+err.Error())
		return nil
	case err != nil:
		return err
	}
	if why := a.cannotHave(live); why != "" {
		a.Conflicts = append(a.Conflicts, fmt.Sprintf("%s %q %s", render.KindOf(live), live.GetName(), why))
		return nil
	}
	plan.KeepConfiguration(a.Object, desired, live)
	after, err := a.applied(ctx, desired, live)
	if err != nil || render.TemplateOf(live) == nil {
		return err
	}
	return a.comparePods(desired, live, after)
}

// cannotHave returns why the object may not be the one that a live child belonged to, "" if it is.
func (a *Adoption) cannotHave(live client.Object) string {
	switch controller := metav1.GetControllerOfNoCopy(live); {
	case live.GetDeletionTimestamp() != nil:
		return "is being deleted: wait until it is gone, and the operator makes it again"
	case controller != nil:
		return fmt.Sprintf("is controlled by %s %q (uid %s) already", controller.Kind, controller.Name, controller.UID)
	case live.GetLabels()[api.LabelManagedBy] != api.ManagedBy:
		return fmt.Sprintf("does not have the label %s=%s, so it may not be that of this object: delete it, or adopt it as deployment/NAME and service/NAME",
			api.LabelManagedBy, api.ManagedBy)
	}
	return ""
}

// comparePods adds a conflict if the operator would replace the pods, and notes on what stays in their
// template without the object, and on what only the controller knows.
func (a *Adoption) comparePods(desired, live, after client.Object) error {
	pods := func(of client.Object) client.Object { return &corev1.PodTemplate{Template: *render.TemplateOf(of)} }
	replaced, err := render.Diff("", pods(live), pods(after))
	if err != nil {
		return err
	}
	more, err := render.Diff(render.NameOf(live), pods(after), pods(withDefaults(desired)))
	if replaced != "" {
		a.Conflicts = append(a.Conflicts, fmt.Sprintf("%s %q has another pod template than this object makes: the operator would replace the pods", render.KindOf(live), live.GetName()))
	}
	if more != "" {
		a.Notes = append(a.Notes, fmt.Sprintf("this stays in the pod template, because the operator removes only what it has set itself:\n%s", strings.TrimSpace(more)))
	}
	if c := fetching(render.TemplateOf(live)); c != nil {
		a.Notes = append(a.Notes, fmt.Sprintf("the image %s fetches the model: if the controller has another one now, or other mirrors, it replaces the pods", c.Image))
	}
	return err
}
