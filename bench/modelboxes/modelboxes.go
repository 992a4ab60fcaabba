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
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

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

// Applied returns a ModelBox whose managedFields say that kubectl has applied what Written returns.
func Applied(box *modelv1.ModelBox) *modelv1.ModelBox {
	owned := fieldpath.NewSet(
		fieldpath.MakePathOrDie("metadata", "labels", "team"), fieldpath.MakePathOrDie("metadata", "labels", "stage"),
		fieldpath.MakePathOrDie("metadata", "annotations", "example.com/owner"),
		fieldpath.MakePathOrDie("spec", "image"), fieldpath.MakePathOrDie("spec", "resourceType"),
		fieldpath.MakePathOrDie("spec", "livenessProbe", "httpGet", "path"), fieldpath.MakePathOrDie("spec", "livenessProbe", "httpGet", "port"),
		fieldpath.MakePathOrDie("spec", "livenessProbe", "periodSeconds"), fieldpath.MakePathOrDie("spec", "livenessProbe", "failureThreshold"),
	)
	own := func(list string, key fieldpath.PathElement, fields ...string) {
		owned.Insert(fieldpath.MakePathOrDie("spec", list, key))
		for _, name := range fields {
			owned.Insert(fieldpath.MakePathOrDie("spec", list, key, name))
		}
	}
	for _, port := range box.Spec.Ports {
		key := fieldpath.KeyByFields("port", int64(port.Port), "protocol", string(corev1.ProtocolTCP))
		own("ports", fieldpath.PathElement{Key: key}, "name", "port")
	}
	for _, env := range box.Spec.Envs {
		own("envs", fieldpath.PathElement{Key: fieldpath.KeyByFields("name", env.Name)}, "name", "value")
	}
	fields, err := owned.ToJSON()
	if err != nil {
		panic(err) // Paths have JSON.
	}
	box.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, APIVersion: modelv1.SchemeGroupVersion.String(),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(fields)),
	}}
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
