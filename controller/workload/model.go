// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
)

// fetches reports whether the pods of a template have the container that fetches a model.
func fetches(template *corev1.PodTemplateSpec) bool {
	init := template.Spec.InitContainers
	return len(init) > 0 && modelsource.IsFetcher(&init[0])
}

// FetcherStatus returns which image and mirrors fetch the model in the pods of a desired Deployment,
// and the hash of the rest of its pod template; nil if they fetch none. The hash must stay the same in
// all versions of the controller, like that of apply.AnnotationHash.
func (w *Workload) FetcherStatus(desired *appsv1.Deployment) (*modelv1.FetcherStatus, error) {
	template := desired.Spec.Template
	if !fetches(&template) {
		return nil, nil
	}
	init := slices.Clone(template.Spec.InitContainers)
	init[0] = modelsource.WithoutFetcher(init[0])
	template.Spec.InitContainers = init
	data, err := template.Marshal()
	if err != nil {
		return nil, err
	}
	sum := fnv.New64a()
	_, _ = sum.Write(data) // A hash returns no error.
	return &modelv1.FetcherStatus{TemplateHash: fmt.Sprintf("%016x", sum.Sum64()), Image: w.Fetcher.Image, Mirrors: w.Fetcher.Mirrors}, nil
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

// VerifyModel returns an error if a stored Deployment does not have the volume with the model,
// although the model is an image: an API server that does not serve image volumes removes it.
// https://kubernetes.io/docs/concepts/storage/volumes/#image
func (w *Workload) VerifyModel(stored client.Object) error {
	if !strings.HasPrefix(w.Model.URI, modelsource.Image+"://") {
		return nil
	}
	deployment := stored.(*appsv1.Deployment)
	for i := range deployment.Spec.Template.Spec.Volumes {
		if v := &deployment.Spec.Template.Spec.Volumes[i]; v.Name == modelsource.Volume && v.Image != nil {
			return nil
		}
	}
	path := field.NewPath("spec", "template", "spec", "volumes").Key(modelsource.Volume).Child("image")
	return apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), w.Owner.GetName(), field.ErrorList{
		field.Forbidden(path, "image volumes need Kubernetes 1.35 or later; use https:// or s3://"),
	})
}
