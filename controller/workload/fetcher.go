// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload has what the kinds that run pods share: the steps of a reconcile after the spec
// is validated, which each kind's Reconcile calls.
package workload

import (
	"errors"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// Workload is what the desired objects of an owner are built from.
type Workload = workload.Workload

// invalidSpec returns the status.Readiness of an owner whose spec leaves open what its children
// have to be, and any other error as it is.
func invalidSpec(err error) error {
	if invalid, ok := errors.AsType[*workload.InvalidError](err); ok {
		return status.NewStalled(status.ReasonInvalidSpec, invalid.Error())
	}
	return err
}

// FetcherStatus returns which image and mirrors fetch the model in the pods of a desired
// Deployment, and the hash of the rest of its pod template; nil if they fetch none.
func FetcherStatus(w *Workload, desired *appsv1.Deployment) (*modelv1.FetcherStatus, error) {
	template := desired.Spec.Template
	template.Annotations = maps.Clone(template.Annotations)
	delete(template.Annotations, api.AnnotationConfiguration) // Its change is no other model.
	init := slices.Clone(template.Spec.InitContainers)
	if len(init) == 0 || !models.IsFetcher(&init[0]) {
		return nil, nil
	}
	init[0] = models.WithoutFetcher(init[0])
	template.Spec.InitContainers = init
	hash, err := apply.Hash(&template)
	if err != nil {
		return nil, err
	}
	return &modelv1.FetcherStatus{TemplateHash: hash, Image: w.Fetcher.Image, Mirrors: w.Fetcher.Mirrors}, nil
}

// keepFetcher keeps what fetches a model in a Deployment that exists.
func (s *State) keepFetcher() error {
	if desired, ok := s.Pods.Desired.(*appsv1.Deployment); ok && s.Pods.Exists() && len(s.Models) > 0 {
		return keepFetcher(s.Workload, desired)
	}
	return nil
}

// keepFetcher changes a desired Deployment so that its pods fetch their model with the image and
// the mirrors that status records, if nothing else of the pod template has changed since. Another
// version of the operator, or another value of its flags, has other ones, which must not replace
// pods. Users may edit an annotation or the pod template of a Deployment and of a ReplicaSet, but
// only read status.
func keepFetcher(w *Workload, desired *appsv1.Deployment) error {
	now, err := FetcherStatus(w, desired)
	applied := w.Fetched
	if err != nil || now == nil || applied == nil || applied.TemplateHash != now.TemplateHash {
		return err
	}
	w.Fetcher = models.Fetcher{Image: applied.Image, Mirrors: applied.Mirrors}
	desired.Spec.Template, err = w.Template()
	return err
}
