// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// minReadySeconds is how long a pod must have been ready before a rollout counts it as
// available: long enough to notice a server that starts and then crashes.
const minReadySeconds = 3

// Workload returns the workload of a ModelBox that has its defaults. fetcher is what the operator
// decides of the container that fetches a model.
func Workload(box *modelv1.ModelBox, fetcher models.Fetcher) *workload.Workload {
	spec := &box.Spec
	return &workload.Workload{
		Owner:     box,
		OwnerKind: modelv1.SchemeGroupVersion.WithKind("ModelBox"),
		Pods:      Pods(box, fetcher),

		Replicas:                spec.Replicas,
		Strategy:                spec.Strategy,
		Rollout:                 spec.RollingUpdate,
		MinReadySeconds:         minReadySeconds,
		ProgressDeadlineSeconds: spec.ProgressDeadlineSeconds,
		ServiceType:             spec.ServiceType,
		Fetched:                 box.Status.Fetcher,
		Paused:                  spec.Paused,
		Schedules:               spec.Schedules,
		RestartOnChange:         spec.RestartOnChange,
		HoldChanges:             spec.HoldChanges,
		Windows:                 spec.Windows,
		Optional:                OptionalChildren(box),
	}
}

// Pods returns what a ModelBox that has its defaults defines of its pods.
func Pods(box *modelv1.ModelBox, fetcher models.Fetcher) *workload.Pods {
	spec := &box.Spec
	main := corev1.Container{
		Name: spec.Name, Image: spec.Image, ImagePullPolicy: spec.ImagePullPolicy, Command: spec.Command, Args: spec.Args,
		Env: spec.Envs, EnvFrom: spec.EnvFrom, Resources: ptr.Deref(spec.Resources, corev1.ResourceRequirements{}),
		ReadinessProbe: spec.ReadinessProbe, LivenessProbe: spec.LivenessProbe, StartupProbe: spec.StartupProbe,
	}
	return &workload.Pods{
		AppName: AppName, Instance: box.Name, MatchLabels: modelv1.MatchLabels(spec.Selector), Container: main, Ports: spec.Ports, Reserved: reserved,
		SharedMemory: spec.SharedMemory, Models: models.Of(spec), Fetcher: fetcher,
		ImagePullSecrets: spec.ImagePullSecrets, TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds,
		Metadata: spec.PodMetadata, Scheduling: spec.Scheduling, Template: spec.PodTemplate,
	}
}

// OptionalChildren returns what the optional children of a ModelBox that has its defaults are made
// of.
func OptionalChildren(box *modelv1.ModelBox) *children.Object {
	spec := &box.Spec
	return &children.Object{
		Children: &spec.Children, Meta: metav1.ObjectMeta{Name: box.Name}, Replicas: *spec.Replicas, Ports: spec.Ports,
		Resources: ptr.Deref(spec.Resources, corev1.ResourceRequirements{}), Scheduled: len(spec.Schedules) > 0,
	}
}
