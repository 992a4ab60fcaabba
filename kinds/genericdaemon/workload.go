// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// Workload returns the workload of a Genericdaemon that has its defaults.
func Workload(daemon *mydomainv1beta1.Genericdaemon) *workload.Workload {
	spec := &daemon.Spec
	return &workload.Workload{
		Owner:     daemon,
		OwnerKind: mydomainv1beta1.SchemeGroupVersion.WithKind("Genericdaemon"),
		Pods:      Pods(daemon),

		OnNodes:         true,
		Rollout:         spec.RollingUpdate,
		Paused:          spec.Paused,
		RestartOnChange: spec.RestartOnChange,
		HoldChanges:     spec.HoldChanges,
		Windows:         spec.Windows,
	}
}

// Pods returns what a Genericdaemon that has its defaults defines of its pods.
func Pods(daemon *mydomainv1beta1.Genericdaemon) *workload.Pods {
	spec := &daemon.Spec
	main := corev1.Container{
		Name: daemon.Name, Image: spec.Image, ImagePullPolicy: spec.ImagePullPolicy, Command: spec.Command, Args: spec.Args,
		Env: spec.Envs, EnvFrom: spec.EnvFrom, Resources: ptr.Deref(spec.Resources, corev1.ResourceRequirements{}),
	}
	return &workload.Pods{
		AppName: AppName, Instance: daemon.Name, Container: main, Reserved: reserved, ImagePullSecrets: spec.ImagePullSecrets,
		TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds, NodeLabel: spec.Label, Template: spec.PodTemplate,
	}
}
