// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// Workload returns the workload of an App that has its defaults.
func Workload(app *appv1.App) *workload.Workload {
	spec := &app.Spec
	return &workload.Workload{
		Owner:     app,
		OwnerKind: appv1.SchemeGroupVersion.WithKind("App"),
		Pods:      Pods(app),

		Replicas:                spec.Replicas,
		Strategy:                spec.Strategy,
		ProgressDeadlineSeconds: spec.ProgressDeadlineSeconds,
		ServiceType:             modelv1.DefaultServiceType(spec.Ports),
		Paused:                  spec.Paused,
		Schedules:               spec.Schedules,
		RestartOnChange:         spec.RestartOnChange,
		HoldChanges:             spec.HoldChanges,
		Windows:                 spec.Windows,
		Optional:                OptionalChildren(app),
	}
}

// Pods returns what an App that has its defaults defines of its pods.
func Pods(app *appv1.App) *workload.Pods {
	spec := &app.Spec
	main := corev1.Container{
		Name: cmp.Or(spec.Name, app.Name), Image: spec.Image, ImagePullPolicy: spec.ImagePullPolicy, Command: spec.Command, Args: spec.Args,
		Env: spec.Envs, EnvFrom: spec.EnvFrom, Resources: ptr.Deref(spec.Resources, corev1.ResourceRequirements{}),
	}
	return &workload.Pods{
		AppName: AppName, Instance: app.Name, MatchLabels: modelv1.MatchLabels(spec.Selector), Container: main, Ports: spec.Ports, Reserved: reserved,
		ImagePullSecrets: spec.ImagePullSecrets, Metadata: spec.PodMetadata, Scheduling: spec.Scheduling, Template: spec.PodTemplate,
	}
}

// OptionalChildren returns what the optional children of an App that has its defaults are made of.
func OptionalChildren(app *appv1.App) *children.Object {
	spec := &app.Spec
	return &children.Object{
		Children: &spec.Children, Meta: metav1.ObjectMeta{Name: app.Name}, Replicas: *spec.Replicas, Ports: spec.Ports,
		Resources: ptr.Deref(spec.Resources, corev1.ResourceRequirements{}), Scheduled: len(spec.Schedules) > 0,
	}
}
