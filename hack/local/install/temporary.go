// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// RunLabel is the label of every object that a run of the operator installs for as long
	// as it runs. Its value identifies the run.
	RunLabel = "modelbox-operator/run"

	// runSuffix distinguishes these objects from those of a deployed operator.
	runSuffix = "-run"

	// cleanUpWithin bounds the creation of such an object, and the removal of all.
	cleanUpWithin = 15 * time.Second
)

// temporary are the kinds of these objects, and their resources. What makes the API server
// refuse requests is first.
var temporary = []struct {
	schema.GroupVersionKind
	resource string
}{
	{admission("MutatingWebhookConfiguration"), "mutatingwebhookconfigurations"},
	{admission("ValidatingWebhookConfiguration"), "validatingwebhookconfigurations"},
	{admission("ValidatingAdmissionPolicyBinding"), "validatingadmissionpolicybindings"},
	{admission("ValidatingAdmissionPolicy"), "validatingadmissionpolicies"},
}

func admission(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind}
}

// Removal returns the arguments with which kubectl deletes what runs have installed and,
// because they were killed, not removed.
func Removal() []string {
	var resources []string
	for _, kind := range temporary {
		resources = append(resources, kind.resource)
	}
	return []string{"delete", strings.Join(resources, ","), "-l", RunLabel}
}

// Run installs objects in a cluster and removes them again. Methods that write finish
// although ctx has ended, so that an interruption leaves no object whose creation was not
// noticed.
type Run struct {
	id string
	c  client.Client
}

// NewRun returns a run that has installed nothing.
func NewRun(c client.Client) *Run { return &Run{id: string(uuid.NewUUID()), c: c} }

// Own returns copies of webhook configurations and policies with the run's label and with
// names of their own: they neither replace those of a deployed operator nor are replaced
// by its deployment. They have no annotations, by which for example cert-manager would
// change them.
func (r *Run) Own(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var own []*unstructured.Unstructured
	for _, object := range objects {
		copied := object.DeepCopy()
		copied.SetName(object.GetName() + runSuffix)
		copied.SetAnnotations(nil)
		copied.SetLabels(map[string]string{RunLabel: r.id})
		if object.GetKind() == "ValidatingAdmissionPolicyBinding" {
			policy, _, _ := unstructured.NestedString(object.Object, "spec", "policyName")
			if err := unstructured.SetNestedField(copied.Object, policy+runSuffix, "spec", "policyName"); err != nil {
				return nil, fmt.Errorf("naming the policy of %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
		own = append(own, copied)
	}
	return own, nil
}

// Create creates objects that Own has returned. It fails if one exists already.
func (r *Run) Create(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := r.create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) create(ctx context.Context, object *unstructured.Unstructured) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpWithin)
	defer cancel()
	if err := r.c.Create(ctx, object.DeepCopy(), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

// Remove deletes everything that this run has created. What another run has created since,
// in place of it, stays.
func (r *Run) Remove(ctx context.Context) error {
	_, err := removeAll(ctx, r.c, client.MatchingLabels{RunLabel: r.id})
	return err
}

// RemoveLeftovers deletes what other runs have created and not removed, and returns the kinds
// and names. A deployed operator's objects have no such label, so they stay.
func RemoveLeftovers(ctx context.Context, c client.Client) ([]string, error) {
	return removeAll(ctx, c, client.HasLabels{RunLabel})
}

func removeAll(ctx context.Context, c client.Client, selector client.ListOption) (removed []string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpWithin)
	defer cancel()
	var errs []error
	for _, kind := range temporary {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersionKind)
		if err := c.List(ctx, list, selector); err != nil {
			errs = append(errs, fmt.Errorf("listing %s: %w", kind.resource, err))
			continue
		}
		for i := range list.Items {
			if err := remove(ctx, c, &list.Items[i]); err != nil {
				errs = append(errs, err)
				continue
			}
			removed = append(removed, kind.Kind+" "+list.Items[i].GetName())
		}
	}
	return removed, errors.Join(errs...)
}

// remove deletes an object, unless it was deleted meanwhile, or deleted and created again.
func remove(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	err := c.Delete(ctx, object, client.Preconditions{UID: new(object.GetUID())})
	if client.IgnoreNotFound(err) == nil || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("removing %s %s: %w", object.GetKind(), object.GetName(), err)
}
