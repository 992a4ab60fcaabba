// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/plan"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
)

// Adoption is what gives a Deployment, and perhaps a Service, to an object.
type Adoption struct {
	// Client reads and writes. FieldManager is that of its writes.
	Client       client.Client
	FieldManager string

	// Object is the stored object, or, unless it Exists, the one to create.
	Object *unstructured.Unstructured
	Exists bool
	// Done is that the object has adopted everything already.
	Done bool
	// Conflicts are what else manages the Deployment or the Service, in sentences, and Notes what
	// the user has to know. Diff is what the operator will change of the two, beside its own
	// annotations.
	Conflicts, Notes []string
	// Warnings are those of admission for the object to create, and of the claims of the pods.
	Warnings []string
	Diff     string

	children []child
	restored bool
	// blocks are those of an object to create, of what is around the pods. hidden is what may not be listed.
	blocks []*modelv1.Children
	around []client.Object
	hidden []string
	// rescale is that the Deployment was scaled to replicas after the object had been created.
	rescale  bool
	replicas int64
}

// child is a live child, and as the operator would leave it. Its spec is replaced unless spec is nil.
type child struct {
	live, after client.Object
	spec        any
}

// Prepare reads a Deployment, and a Service unless its name is "", and finds out what an
// object of a kind that adopts them would change. It writes nothing: what it sends are dry runs. An
// error says why they cannot be adopted; if the pods would restart, it is one.
func (a *Adoption) Prepare(ctx context.Context, kind *kinds.Kind, key client.ObjectKey, service string) error {
	d, s := &appsv1.Deployment{}, (*corev1.Service)(nil)
	live := []client.Object{d}
	if err := a.read(ctx, key, d); err != nil {
		return err
	}
	if service != "" {
		s = &corev1.Service{}
		live = append(live, s)
		if err := a.read(ctx, client.ObjectKey{Namespace: key.Namespace, Name: service}, s); err != nil {
			return err
		}
	}
	found := kind.Unstructured()
	if err := a.Client.Get(ctx, key, found); apierrors.IsNotFound(err) {
		found = nil
	} else if err != nil {
		return err
	}
	if err := a.findBlocks(ctx, kind, d); err != nil {
		return err
	}
	desired, err := a.decide(kind, found, d, s)
	if err != nil || a.Done {
		return err
	}
	if err := a.previews(ctx, desired, live); err != nil {
		return err
	}
	a.Warnings = append(a.Warnings, plan.ClaimRisks(ctx, a.Client, d)...)
	return a.conflicts(ctx, kind, d)
}

// previews adds the live children, those of around first: from then on, the autoscaler does not change the Deployment.
func (a *Adoption) previews(ctx context.Context, desired, live []client.Object) error {
	for i, optional := range desired[len(live):] {
		if err := a.replaced(ctx, optional, a.around[i]); err != nil {
			return err
		}
	}
	for i := range live {
		if err := a.preview(ctx, desired[i], live[i]); err != nil {
			return err
		}
	}
	return nil
}

// decide sets Object, Exists and Done, and returns the children that the operator builds for the
// object, unless it is Done: first those of d and s, then those of around. found is the stored object of the name, nil if there is none. It asks
// the cluster nothing.
func (a *Adoption) decide(kind *kinds.Kind, found *unstructured.Unstructured, d *appsv1.Deployment, s *corev1.Service) (desired []client.Object, err error) {
	live := []client.Object{d}
	if s != nil {
		live = append(live, s)
	}
	stored, err := a.object(kind, found, d, s)
	if err != nil {
		return nil, err
	}
	stored.SetUID(cmp.Or(a.Object.GetUID(), render.NoUID))
	if desired, err = render.Children(kind, stored, render.Fetcher); err != nil {
		return nil, err
	}
	around := a.match(desired, ptr.Deref(d.Spec.Replicas, 1))
	if a.Done = a.Exists && !kinds.IsPaused(a.Object) && !slices.ContainsFunc(slices.Concat(live, a.around), func(l client.Object) bool { return !metav1.IsControlledBy(l, a.Object) }); a.Done {
		return nil, nil
	}
	desired = slices.DeleteFunc(desired, isOptional)
	return append(desired, around...), a.same(desired, live)
}

// isOptional reports whether a child is neither the Deployment nor the Service: one of a block of
// an object that exists, which the operator creates itself.
func isOptional(child client.Object) bool {
	switch child.(type) {
	case *appsv1.Deployment, *corev1.Service:
		return false
	}
	return true
}

// read reads a live object strictly: a field that this release does not know could get lost.
func (a *Adoption) read(ctx context.Context, key client.ObjectKey, into client.Object) error {
	gvk, err := a.Client.GroupVersionKindFor(into)
	if err != nil {
		return err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(gvk)
	if err := a.Client.Get(ctx, key, live); err != nil {
		return err
	}
	return decode(live, into)
}

// decode decodes a live object strictly.
func decode(live *unstructured.Unstructured, into client.Object) error {
	delete(live.Object, "status")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(live.Object, into, true); err != nil {
		return fmt.Errorf("%s %q has what this release of modelbox does not know: use a newer one: %w", strings.ToLower(live.GetKind()), live.GetName(), err)
	}
	return nil
}

// object sets Object, and returns it as it is stored: the existing one of an adoption that was
// interrupted, or the one to create, as admission would leave it.
func (a *Adoption) object(kind *kinds.Kind, found *unstructured.Unstructured, d *appsv1.Deployment, s *corev1.Service) (*unstructured.Unstructured, error) {
	if found != nil {
		a.Object, a.Exists = found, true
		if found.GetDeletionTimestamp() != nil {
			return nil, fmt.Errorf("%s %q is being deleted", kind.Singular(), d.Name)
		}
		stored := found.DeepCopy()
		return stored, errors.Join(a.keepReplicas(stored, d), adoptable(d), adoptableService(d, s, kind == kinds.ModelBox()))
	}
	object, err := Object(kind, d, s)
	if err = errors.Join(err, a.addBlocks(object)); err != nil {
		return nil, err
	}
	a.Object = object
	resp := create.Dry(kind, create.Request{Object: object, Namespace: d.Namespace})
	if err := resp.Err(); err != nil {
		return nil, fmt.Errorf("deployment %q runs what the fields of the kind %s cannot say: %w", d.Name, kind.GVK.Kind, err)
	}
	a.Warnings = resp.Warnings
	return resp.Object, nil
}

// same returns an error unless the children that the operator builds are what runs, and may be
// taken.
func (a *Adoption) same(desired, live []client.Object) error {
	for _, l := range live {
		if owner := metav1.GetControllerOf(l); owner != nil && owner.UID != a.Object.GetUID() {
			return fmt.Errorf("%s %q is controlled by %s %q already", render.KindOf(l), l.GetName(), owner.Kind, owner.Name)
		}
	}
	if len(desired) != len(live) {
		return fmt.Errorf("%s %q exists, and has a Service only if spec.ports is set: name service/%s as well if it is, and do not if it is not",
			a.Object.GetKind(), a.Object.GetName(), a.Object.GetName())
	}
	if at := len(live) - 1; desired[at].GetName() != live[at].GetName() {
		return fmt.Errorf("%s %q exists, and its Service is service/%s, not %q", a.Object.GetKind(), a.Object.GetName(), desired[at].GetName(), live[at].GetName())
	}
	diff, err := Differences(withNodePorts(desired, live), live)
	if err == nil && diff != "" {
		err = fmt.Errorf("the operator would not build what runs, so nothing was written; the differences are:\n%s", diff)
	}
	if err != nil && a.Exists {
		err = fmt.Errorf("%s %q exists: change it, or delete it with --cascade=orphan: %w", a.Object.GetKind(), a.Object.GetName(), err)
	}
	return err
}

// preview asks the API server, by a dry run, what the operator's first apply would make of a live
// child, and adds it. It is the one that knows its own defaults, and the fields that the operator
// owns already.
func (a *Adoption) preview(ctx context.Context, desired, live client.Object) error {
	after, err := a.applied(ctx, desired, live)
	if err != nil {
		return err
	}
	if changes, err := Differences([]client.Object{after}, []client.Object{live}); err != nil || changes != "" {
		return errors.Join(err, fmt.Errorf("the API server would change what runs, so nothing was written; the differences are:\n%s", changes))
	}
	notes, err := unheld(desired, after)
	a.Notes = append(a.Notes, notes...)
	return err
}

// applied adds a live child, and returns it as the operator's first apply would leave it.
func (a *Adoption) applied(ctx context.Context, desired, live client.Object) (client.Object, error) {
	desired.SetOwnerReferences(nil) // Their owner may not exist yet.
	after, err := plan.ApplyChild(ctx, a.Client, desired, live, client.DryRunAll)
	if err != nil {
		return nil, fmt.Errorf("the API server would refuse what the operator applies: %w", err)
	}
	diff, err := render.Diff(render.NameOf(live), live, after)
	a.Diff += diff
	a.children = append(a.children, child{live: live, after: after})
	return after, err
}

// conflicts adds what else manages the live objects.
func (a *Adoption) conflicts(ctx context.Context, kind *kinds.Kind, d *appsv1.Deployment) error {
	acting, hidden, err := plan.Actors(ctx, a.Client, client.ObjectKeyFromObject(d), kind.GVK.Kind, a.around...)
	a.Conflicts = append(a.Conflicts, acting...)
	for _, what := range append(hidden, a.hidden...) {
		if note := "not considered: " + what; !slices.Contains(a.Notes, note) {
			a.Notes = append(a.Notes, note)
		}
	}
	for _, c := range a.children {
		for _, manager := range managers(c.live) {
			a.Conflicts = append(a.Conflicts, fmt.Sprintf("%s manages %s %q as well: take it out of its source first, without deleting it", manager, render.KindOf(c.live), c.live.GetName()))
		}
	}
	if err != nil || slices.ContainsFunc(a.children, func(c child) bool { return render.KindOf(c.live) == "Service" }) {
		return err
	}
	return a.otherServices(ctx, d)
}

// otherServices adds a note on each Service that selects the pods, of an object that has none.
func (a *Adoption) otherServices(ctx context.Context, d *appsv1.Deployment) error {
	err := InCluster(a.Client)(ctx, services, d.Namespace, func(u *unstructured.Unstructured) error {
		if selects(u, d) {
			a.Notes = append(a.Notes, fmt.Sprintf("service/%s is not adopted: name it as well, to let the operator keep it", u.GetName()))
		}
		return nil
	})
	if apierrors.IsForbidden(err) {
		a.Notes, err = append(a.Notes, "not considered: "+err.Error()), nil
	}
	return err
}
