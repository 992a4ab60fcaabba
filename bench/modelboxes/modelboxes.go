// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelboxes builds the ModelBoxes that the implementations reconcile, and the
// writes that one of them needs.
package modelboxes

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
	modelbox.Default(box)
	return box
}

// Written returns a ModelBox as a user writes it, without defaults. As JSON, with its
// managedFields, it is 1.6 kB.
func Written(i int) *modelv1.ModelBox {
	box := &modelv1.ModelBox{
		TypeMeta: metav1.TypeMeta{APIVersion: modelv1.SchemeGroupVersion.String(), Kind: "ModelBox"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   Namespace,
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

// mustJSON encodes a value whose encoding cannot fail.
func mustJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
