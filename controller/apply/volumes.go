// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// verify asks the API server, by a dry run, what it would store of a pod template with a volume
// that is an image, and returns a *RefusedError if it would remove it: it does so without an error
// where it does not serve such volumes, and pods must not start without it. For any other child it
// sends no request.
func (w Writer) verify(ctx context.Context, child *Child) error {
	if len(imageVolumes(child.Desired)) == 0 {
		return nil
	}
	stored, err := w.dryRun(ctx, child)
	if apierrors.IsBadRequest(err) {
		return nil // A webhook does not support dry runs. The response to the write is verified afterwards.
	}
	if err == nil {
		err = missingVolumes(child.Desired, stored)
	}
	return Refused("applying", child.Desired, err)
}

// dryRun returns the child as the API server would store it. No read of the cache waits for the
// version in the response: nothing is stored.
func (w Writer) dryRun(ctx context.Context, child *Child) (client.Object, error) {
	// Fields that the API server does not know are refused by the write itself, and named there.
	const ignore = client.FieldValidation("Ignore")
	if !child.found {
		stored := child.Desired.DeepCopyObject().(client.Object)
		return stored, w.Client.Create(ctx, stored, client.DryRunAll, client.FieldOwner(FieldManager), client.DisableReadYourWritesConsistency, ignore)
	}
	spec, err := replacement(child.Desired, child.Live)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal([]operation{{Op: "replace", Path: "/spec", Value: spec}})
	if err != nil {
		return nil, err
	}
	stored := child.Live.DeepCopyObject().(client.Object)
	return stored, w.Client.Patch(ctx, stored, client.RawPatch(types.JSONPatchType, patch),
		client.DryRunAll, client.FieldOwner(FieldManager), client.DisableReadYourWritesConsistency, ignore)
}

// missingVolumes returns an error, of a type that the API server could respond with, if what it stores lacks a
// desired volume that is an image.
// https://kubernetes.io/docs/concepts/storage/volumes/#image
func missingVolumes(desired, stored client.Object) error {
	has := imageVolumes(stored)
	for name := range imageVolumes(desired) {
		if has[name] {
			continue
		}
		path := field.NewPath("spec", "template", "spec", "volumes").Key(name).Child("image")
		return apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), desired.GetName(), field.ErrorList{
			field.Forbidden(path, "image volumes need Kubernetes 1.35 or later; use https:// or s3://"),
		})
	}
	return nil
}

// imageVolumes returns the names of the volumes of a pod template that are images.
func imageVolumes(obj client.Object) map[string]bool {
	names := map[string]bool{}
	template := kinds.PodTemplate(obj)
	if template == nil {
		return names
	}
	volumes := template.Spec.Volumes
	for i := range volumes {
		if volumes[i].Image != nil {
			names[volumes[i].Name] = true
		}
	}
	return names
}
