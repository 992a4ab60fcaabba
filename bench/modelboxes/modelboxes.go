// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelboxes builds the ModelBoxes that the implementations reconcile, and the
// writes that one of them needs.
package modelboxes

import (
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
)

// Namespace holds all objects of a benchmark.
const Namespace = "bench"

// Name returns the name of the i-th object.
func Name(i int) string { return fmt.Sprintf("box-%05d", i) }

// ModelBox returns a ModelBox as it is after admission: defaulted and valid. Only the
// writes of a controller are missing.
func ModelBox(i int) *modelv1.ModelBox {
	box := Written(i)
	modelbox.Default(box, nil, nil)
	return box
}

// Written returns a ModelBox as a user writes it, without defaults. As JSON, with its
// managedFields, it is 1.6 kB.
func Written(i int) *modelv1.ModelBox {
	box := &modelv1.ModelBox{
		TypeMeta: metav1.TypeMeta{APIVersion: modelv1.SchemeGroupVersion.String(), Kind: "ModelBox"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        Name(i),
			Labels:      map[string]string{"team": "serving", "stage": "production"},
			Annotations: map[string]string{"example.com/owner": "someone@example.com"},
		},
		Spec: modelv1.ModelBoxSpec{
			Image:        "registry.example.com/team/server:1.2",
			ResourceType: modelv1.ResourceTypeMedium,
			Ports:        []modelv1.Port{{Name: "http", Port: 8080}},
			LivenessProbe: &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}},
				PeriodSeconds: 10, FailureThreshold: 3,
			},
		},
	}
	for _, name := range []string{"MODEL_NAME", "MODEL_PATH", "LOG_LEVEL", "MAX_BATCH", "ENDPOINT", "TOKENIZER", "CACHE_DIR", "SHARDS"} {
		box.Spec.Envs = append(box.Spec.Envs, corev1.EnvVar{Name: name, Value: strings.Repeat(strings.ToLower(name), 6)})
	}
	return box
}

// Full returns a ModelBox like Written that also has all fields of a model server.
func Full(i int) *modelv1.ModelBox {
	box := Written(i)
	spec := &box.Spec
	spec.ImagePullPolicy = corev1.PullIfNotPresent
	spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	spec.Command, spec.Args = []string{"serve"}, []string{"--port=8080", "--model=$(MODEL_NAME)"}
	spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}
	spec.SharedMemory = new(resource.MustParse("2Gi"))
	spec.Strategy = &appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
		MaxSurge: new(intstr.FromInt32(0)), MaxUnavailable: new(intstr.FromInt32(1)),
	}}
	spec.ProgressDeadlineSeconds, spec.TerminationGracePeriodSeconds = new(int32(3600)), new(int64(120))
	spec.StartupProbe = &corev1.Probe{ProbeHandler: spec.LivenessProbe.ProbeHandler, PeriodSeconds: 2, FailureThreshold: 900}
	return box
}

// Deployment returns a Deployment like that of a ModelBox, for measurements without a
// controller.
func Deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.com/team/server:1.2"}}},
			},
		},
	}
}

// Service returns a Service with one port.
func Service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 8080}},
		},
	}
}

// mustJSON encodes a value whose encoding cannot fail.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
