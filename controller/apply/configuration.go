// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applyConfiguration is the apply configuration of a desired object. What the
// Go type cannot leave out, its status, goes.
func applyConfiguration(desired client.Object) (runtime.ApplyConfiguration, error) {
	switch desired := desired.(type) {
	case *appsv1.Deployment:
		configuration := &appsv1ac.DeploymentApplyConfiguration{}
		err := convert(desired, configuration)
		configuration.Status = nil
		return &deploymentConfiguration{configuration}, err
	case *appsv1.DaemonSet:
		configuration := &appsv1ac.DaemonSetApplyConfiguration{}
		err := convert(desired, configuration)
		configuration.Status = nil
		return &daemonSetConfiguration{configuration}, err
	case *corev1.Service:
		configuration := &corev1ac.ServiceApplyConfiguration{}
		err := convert(desired, configuration)
		configuration.Status = nil
		return &serviceConfiguration{configuration}, err
	}
	return nil, fmt.Errorf("no apply configuration is known for %T", desired)
}

// The client decodes the answer into the configuration that was sent. encoding/json
// would keep, in the items of its lists, the fields that the answer has not: so the
// configuration is replaced by the answer.
type (
	deploymentConfiguration struct {
		*appsv1ac.DeploymentApplyConfiguration
	}
	daemonSetConfiguration struct {
		*appsv1ac.DaemonSetApplyConfiguration
	}
	serviceConfiguration struct {
		*corev1ac.ServiceApplyConfiguration
	}
)

// UnmarshalJSON replaces the configuration by the answer.
func (c *deploymentConfiguration) UnmarshalJSON(data []byte) error {
	return replace(data, c.DeploymentApplyConfiguration)
}

// UnmarshalJSON replaces the configuration by the answer.
func (c *daemonSetConfiguration) UnmarshalJSON(data []byte) error {
	return replace(data, c.DaemonSetApplyConfiguration)
}

// UnmarshalJSON replaces the configuration by the answer.
func (c *serviceConfiguration) UnmarshalJSON(data []byte) error {
	return replace(data, c.ServiceApplyConfiguration)
}

func replace[T any](data []byte, configuration *T) error {
	var answer T
	if err := json.Unmarshal(data, &answer); err != nil {
		return err
	}
	*configuration = answer
	return nil
}

func convert(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}
