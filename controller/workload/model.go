// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
)

// FetcherStatus returns which image and mirrors fetch the model in the pods of a desired Deployment,
// and the hash of the rest of its pod template; nil if they fetch none.
func (w *Workload) FetcherStatus(desired *appsv1.Deployment) (*modelv1.FetcherStatus, error) {
	template := desired.Spec.Template
	template.Annotations = maps.Clone(template.Annotations)
	delete(template.Annotations, api.AnnotationConfiguration) // Its change is no other model.
	init := slices.Clone(template.Spec.InitContainers)
	if len(init) == 0 || !modelsource.IsFetcher(&init[0]) {
		return nil, nil
	}
	init[0] = modelsource.WithoutFetcher(init[0])
	template.Spec.InitContainers = init
	hash, err := apply.Hash(&template)
	if err != nil {
		return nil, err
	}
	return &modelv1.FetcherStatus{TemplateHash: hash, Image: w.Fetcher.Image, Mirrors: w.Fetcher.Mirrors}, nil
}

// keepFetcher changes a desired Deployment so that its pods fetch their model with the image and the
// mirrors that status records, if nothing else of the pod template has changed since. Another version
// of the operator, or another value of its flags, has other ones, which must not replace pods. Users may
// edit an annotation or the pod template of a Deployment and of a ReplicaSet, but only read status.
func (w *Workload) keepFetcher(desired *appsv1.Deployment) error {
	now, err := w.FetcherStatus(desired)
	applied := w.Fetched
	if err != nil || now == nil || applied == nil || applied.TemplateHash != now.TemplateHash {
		return err
	}
	w.Fetcher = modelsource.Fetcher{Image: applied.Image, Mirrors: applied.Mirrors}
	desired.Spec.Template, err = w.Template()
	return err
}

// VerifyModel returns an error if a stored Deployment does not have the volume of a model that is an image:
// an API server that does not serve image volumes removes it.
// https://kubernetes.io/docs/concepts/storage/volumes/#image
func (w *Workload) VerifyModel(stored client.Object) error {
	volumes := stored.(*appsv1.Deployment).Spec.Template.Spec.Volumes
	for i := range w.Models {
		m := &w.Models[i]
		if m.From.Scheme != modelsource.Image || slices.ContainsFunc(volumes, func(v corev1.Volume) bool { return v.Name == m.VolumeName() && v.Image != nil }) {
			continue
		}
		path := field.NewPath("spec", "template", "spec", "volumes").Key(m.VolumeName()).Child("image")
		return apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), w.Owner.GetName(), field.ErrorList{
			field.Forbidden(path, "image volumes need Kubernetes 1.35 or later; use https:// or s3://"),
		})
	}
	return nil
}
