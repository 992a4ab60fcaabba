// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

func TestReferences(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, template, want string }{
		{"none", `{spec: {containers: [{name: a, env: [{name: A, value: b}, {name: B, valueFrom: {fieldRef: {fieldPath: a}}}]}], volumes: [{name: a, emptyDir: {}}]}}`, ""},
		{"env", `{spec: {containers: [{name: a, env: [{name: A, valueFrom: {configMapKeyRef: {name: b, key: k}}}, {name: B, valueFrom: {secretKeyRef: {name: c, key: k}}}]}]}}`,
			"ConfigMap/b Secret/c"},
		{"envFrom of an init container and a sidecar", `{spec: {initContainers: [{name: i, envFrom: [{configMapRef: {name: b}}]}], containers: [{name: a}, {name: s, envFrom: [{secretRef: {name: a}}]}]}}`,
			"ConfigMap/b Secret/a"},
		{"volumes", `{spec: {volumes: [{name: a, configMap: {name: z}}, {name: b, secret: {secretName: v}}, {name: c, projected: {sources: [{configMap: {name: x}}, {secret: {name: w}}, {downwardAPI: {}}]}}]}}`,
			"ConfigMap/x ConfigMap/z Secret/v Secret/w"},
		{"twice, and in another order", `{spec: {containers: [{name: a, envFrom: [{configMapRef: {name: z}}, {configMapRef: {name: a}}, {configMapRef: {name: z}}]}], volumes: [{name: v, configMap: {name: a}}]}}`,
			"ConfigMap/a ConfigMap/z"},
		{"without a name", `{spec: {volumes: [{name: v, configMap: {}}]}}`, ""},
		{"pull secrets, which a container does not read", `{spec: {imagePullSecrets: [{name: a}]}}`, ""},
	} {
		template := &corev1.PodTemplateSpec{}
		if err := yaml.UnmarshalStrict([]byte(test.template), template); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, reference := range References(template) {
			got = append(got, reference.String())
		}
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// Every place in the types of Kubernetes that names a ConfigMap or a Secret which containers read
// is found. A new one fails this test.
func TestEveryReferenceOfContainersAndVolumesIsFound(t *testing.T) {
	t.Parallel()
	found := 0
	for _, place := range []struct {
		of   any
		into func(any) corev1.PodSpec
	}{
		{corev1.EnvVarSource{}, func(v any) corev1.PodSpec {
			return corev1.PodSpec{Containers: []corev1.Container{{Env: []corev1.EnvVar{{ValueFrom: v.(*corev1.EnvVarSource)}}}}}
		}},
		{corev1.EnvFromSource{}, func(v any) corev1.PodSpec {
			return corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{*v.(*corev1.EnvFromSource)}}}}
		}},
		{corev1.VolumeSource{}, func(v any) corev1.PodSpec {
			return corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: *v.(*corev1.VolumeSource)}}}
		}},
		{corev1.VolumeProjection{}, func(v any) corev1.PodSpec {
			return corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{*v.(*corev1.VolumeProjection)}}}}}}
		}},
	} {
		kind := reflect.TypeOf(place.of)
		for i := range kind.NumField() {
			if name := kind.Field(i).Name; !strings.Contains(name, "Secret") && !strings.Contains(name, "ConfigMap") {
				continue
			}
			found++
			source := reflect.New(kind)
			target := reflect.New(kind.Field(i).Type.Elem())
			for _, member := range []string{"Name", "SecretName"} {
				if f := target.Elem().FieldByName(member); f.IsValid() {
					f.SetString("a")
				}
			}
			source.Elem().Field(i).Set(target)
			if got := References(&corev1.PodTemplateSpec{Spec: place.into(source.Interface())}); len(got) != 1 || got[0].Name != "a" {
				t.Errorf("%s.%s: %v", kind, kind.Field(i).Name, got)
			}
		}
	}
	if found != 8 {
		t.Errorf("%d places name a ConfigMap or a Secret, want 8", found)
	}
}

func TestRestartWarning(t *testing.T) {
	t.Parallel()
	values := []modelv1.RestartOnChange{"", modelv1.RestartOnChangeNone, modelv1.RestartOnChangeReferenced}
	var got []string
	for _, old := range values {
		for _, value := range values {
			if len(RestartWarning(value, old)) > 0 {
				got = append(got, fmt.Sprintf("%s->%s", old, value))
			}
		}
	}
	if want := []string{"->Referenced", "None->Referenced", "Referenced->", "Referenced->None"}; !slices.Equal(got, want) {
		t.Errorf("warnings for %q, want %q", got, want)
	}
}
