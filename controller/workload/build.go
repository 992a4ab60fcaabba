// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload has what the kinds that run pods share: the steps of a reconcile after the spec
// is validated, which each kind's Reconcile calls.
package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
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

// Buildable returns a status.Readiness with the errors of a spec that leave open what its children
// have to be, nil if there are none.
func Buildable(errs field.ErrorList) error { return invalidSpec(workload.Buildable(errs)) }

// FetcherStatus returns which image and mirrors fetch the model in the pods of a desired Deployment,
// and the hash of the rest of its pod template; nil if they fetch none.
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

// keepFetcher changes a desired Deployment so that its pods fetch their model with the image and the
// mirrors that status records, if nothing else of the pod template has changed since. Another version
// of the operator, or another value of its flags, has other ones, which must not replace pods. Users may
// edit an annotation or the pod template of a Deployment and of a ReplicaSet, but only read status.
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

// observe returns the observed state of the Deployment, and copies its counters, and the address of the Service,
// to the status of the owner.
func observe(w *Workload, c *Children, into *modelv1.WorkloadStatus) Observed {
	live := c.Pods.Live.(*appsv1.Deployment)
	observed := &live.Status
	into.Replicas = observed.Replicas
	into.ReadyReplicas = observed.ReadyReplicas
	into.UpdatedReplicas = observed.UpdatedReplicas
	into.AvailableReplicas = observed.AvailableReplicas
	into.UnavailableReplicas = observed.UnavailableReplicas
	into.TerminatingReplicas = observed.TerminatingReplicas
	into.CollisionCount = observed.CollisionCount
	into.Selector = w.Selector().String()
	into.Address = ""
	if c.Service.Exists() {
		into.Address = w.Address()
	}
	c.surroundings.status(into)
	return Observed{Kind: "Deployment", Progress: unpaused(live), Availability: availability(live), Workload: problems.OfDeployment(live)}
}

// reasonDeploymentPaused means that the rollouts of the Deployment are paused.
const reasonDeploymentPaused = "DeploymentPaused"

// unpaused is Progress, unless the Deployment is paused ("kubectl rollout pause"). The operator does not resume
// it: a user has paused it on purpose.
func unpaused(live *appsv1.Deployment) status.Readiness {
	if live.Spec.Paused {
		return status.Readiness{Reason: reasonDeploymentPaused, Message: fmt.Sprintf(
			"Deployment %q is paused, so its pods do not get a changed template: kubectl rollout resume deployment/%s -n %s",
			live.Name, live.Name, live.Namespace)}
	}
	return Progress(live)
}

// Progress returns the readiness of the owner of a Deployment whose children have been
// applied. It is ready only if every pod runs the current template and is available, and
// no other pod is left: the fields that "kubectl rollout status" reads.
func Progress(deployment *appsv1.Deployment) status.Readiness {
	observed, scaled := &deployment.Status, Scaled(deployment)
	desired := ptr.Deref(deployment.Spec.Replicas, 1)
	if !isObserved(deployment) {
		return scaled
	}
	if failure := failure(observed); failure != nil {
		return *failure
	}
	switch {
	case observed.UpdatedReplicas < desired:
		return status.Progressing("%d of %d pods run the current template", observed.UpdatedReplicas, desired)
	case observed.Replicas > observed.UpdatedReplicas:
		return status.Progressing("waiting for the deletion of %d of %d pods, which run an old template",
			observed.Replicas-observed.UpdatedReplicas, observed.Replicas)
	}
	return scaled
}

// Scaled returns the readiness of a Deployment by the number of its pods, whatever template they
// run.
func Scaled(deployment *appsv1.Deployment) status.Readiness {
	observed, desired := &deployment.Status, ptr.Deref(deployment.Spec.Replicas, 1)
	switch {
	case !isObserved(deployment):
		return status.NewReconciling(status.ReasonProgressing, status.NotObservedYet("Deployment", deployment.Generation))
	case observed.Replicas > desired:
		return status.Progressing("waiting for the deletion of %d of %d pods", observed.Replicas-desired, observed.Replicas)
	case observed.AvailableReplicas < desired:
		return status.Progressing("%d of %d pods are available", observed.AvailableReplicas, desired)
	}
	return status.NewReady(fmt.Sprintf("%d of %d pods are available", observed.AvailableReplicas, desired))
}

// ReasonTargetNotFound means that the Deployment which an object acts on does not exist.
const ReasonTargetNotFound = "TargetNotFound"

// TargetNotFound returns the readiness of an object whose spec.deploymentName names no Deployment.
func TargetNotFound(name string) status.Readiness {
	return status.NewStalled(ReasonTargetNotFound, fmt.Sprintf(
		"there is no Deployment %q in this namespace: create it, or change spec.deploymentName", name))
}

// Target reads, from the cache, the Deployment that an object of its namespace acts on, nil if there is none.
func Target(ctx context.Context, cache client.Reader, namespace, name string) (*appsv1.Deployment, error) {
	target := &appsv1.Deployment{}
	err := cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, target)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %q: %w", name, err)
	}
	return target, nil
}

// failure returns the readiness for a Deployment that cannot progress by itself, nil if it
// can, with the message of the Deployment's own condition.
func failure(observed *appsv1.DeploymentStatus) *status.Readiness {
	for _, condition := range observed.Conditions {
		var reason string
		switch {
		case condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue:
			reason = status.ReasonReplicaFailure
		case condition.Type == appsv1.DeploymentProgressing && condition.Reason == status.ReasonProgressDeadline:
			reason = status.ReasonProgressDeadline
		default:
			continue
		}
		readiness := status.NewStalled(reason, condition.Message)
		return &readiness
	}
	return nil
}

// isObserved reports whether the status of a Deployment is one of its current spec.
func isObserved(deployment *appsv1.Deployment) bool {
	return status.IsObserved(deployment.Generation, deployment.Status.ObservedGeneration)
}

// availability returns the availability of the owner of a Deployment: the Deployment's own
// condition. That one has a minimum: all replicas but those that maxUnavailable allows.
func availability(deployment *appsv1.Deployment) metav1.Condition {
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable {
			return metav1.Condition{
				Status:             metav1.ConditionStatus(condition.Status),
				Reason:             condition.Reason,
				Message:            condition.Message,
				LastTransitionTime: condition.LastTransitionTime,
			}
		}
	}
	return status.NotObserved("Deployment", deployment.Generation)
}
