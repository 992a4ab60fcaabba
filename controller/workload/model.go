// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
)

// AnnotationFetcher holds, on a Deployment whose pods fetch a model, the image and the mirrors
// of the container that fetches, and for which pod template they were chosen. An upgrade of the
// operator, or another value of its flags, has other ones: they come into effect when the pods
// are replaced anyway, and do not replace the pods.
const AnnotationFetcher = "model.github.com/fetcher"

// fetcherChoice is the value of AnnotationFetcher, as JSON.
type fetcherChoice struct {
	// Template is the hash of the pod template without the image and the mirrors.
	Template string `json:"template"`
	modelsource.Fetcher
}

// fetches reports whether the pods of a template have the container that fetches a model.
func fetches(template *corev1.PodTemplateSpec) bool {
	init := template.Spec.InitContainers
	return len(init) > 0 && modelsource.IsFetcher(&init[0])
}

// chooseFetcher records in a desired Deployment which image and mirrors it has, and for which
// pod template.
func (w *Workload) chooseFetcher(desired *appsv1.Deployment) error {
	hash, err := hashWithoutFetcher(desired.Spec.Template)
	if err != nil {
		return err
	}
	value, err := json.Marshal(fetcherChoice{Template: hash, Fetcher: w.Fetcher})
	if err != nil {
		return err
	}
	if desired.Annotations == nil {
		desired.Annotations = map[string]string{}
	}
	desired.Annotations[AnnotationFetcher] = string(value)
	return nil
}

// hashWithoutFetcher returns the hash of a pod template without the image and the mirrors of its
// first init container. It must stay the same in all versions of the controller, like that of
// apply.AnnotationHash.
func hashWithoutFetcher(template corev1.PodTemplateSpec) (string, error) {
	init := slices.Clone(template.Spec.InitContainers)
	init[0] = modelsource.WithoutFetcher(init[0])
	template.Spec.InitContainers = init
	data, err := template.Marshal()
	if err != nil {
		return "", err
	}
	sum := fnv.New64a()
	_, _ = sum.Write(data) // A hash returns no error.
	return fmt.Sprintf("%016x", sum.Sum64()), nil
}

// KeepFetcher changes a desired Deployment so that its pods fetch their model with the image and
// the mirrors of the live one, if nothing else of the pod template has changed since these were
// chosen. It does nothing if the pods fetch no model.
func (w *Workload) KeepFetcher(desired, live *appsv1.Deployment) error {
	if desired.Annotations[AnnotationFetcher] == live.Annotations[AnnotationFetcher] {
		return nil
	}
	var now, before fetcherChoice
	if !decodeChoice(desired, &now) || !decodeChoice(live, &before) || before.Template != now.Template || before.Image == "" {
		return nil
	}
	kept, pods := *w, *w.Pods
	kept.Pods, pods.Fetcher = &pods, before.Fetcher
	template, err := kept.Template()
	if err != nil {
		return err
	}
	desired.Spec.Template = template
	return kept.chooseFetcher(desired)
}

// FetcherOf returns the image and the mirrors that the pods of a live Deployment fetch their model
// with, and whether they fetch one.
func FetcherOf(live *appsv1.Deployment) (modelsource.Fetcher, bool) {
	var choice fetcherChoice
	fetches := decodeChoice(live, &choice) && choice.Image != ""
	return choice.Fetcher, fetches
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

// decodeChoice decodes AnnotationFetcher, and reports whether there is a valid one.
func decodeChoice(deployment *appsv1.Deployment, into *fetcherChoice) bool {
	value, ok := deployment.Annotations[AnnotationFetcher]
	return ok && json.Unmarshal([]byte(value), into) == nil
}
