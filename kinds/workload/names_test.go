// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// impossible are names that no Secret, ConfigMap or claim can have.
var impossible = []string{"a/b", "a%b", "..", ".", "A", "a_b", "-a", "a b", "é", strings.Repeat("a", 254)}

// Whatever field of a pod template names a Secret, a ConfigMap or a claim, an impossible name is
// refused at that field, or at its volume.
func TestNamesThatAReferenceCannotHave(t *testing.T) {
	t.Parallel()
	judge := func(pod string) field.ErrorList {
		p := web()
		text, err := yaml.YAMLToJSON([]byte("spec: " + pod))
		if err != nil {
			t.Fatalf("%v in %s", err, pod)
		}
		p.Template = &runtime.RawExtension{Raw: text}
		return p.Validate(nil)
	}
	const at = "spec.podTemplate.spec."
	for pod, want := range map[string]string{
		`{volumes: [{name: v, secret: {secretName: NAME}}]}`:                                                                      at + "volumes[0]",
		`{volumes: [{name: v, secret: {secretName: NAME, optional: true}}]}`:                                                      at + "volumes[0]",
		`{volumes: [{name: v, configMap: {name: NAME}}]}`:                                                                         at + "volumes[0]",
		`{volumes: [{name: v, projected: {sources: [{secret: {name: NAME}}]}}]}`:                                                  at + "volumes[0]",
		`{volumes: [{name: v, projected: {sources: [{secret: {name: a}}, {configMap: {name: NAME}}]}}]}`:                          at + "volumes[0]",
		`{volumes: [{name: v, persistentVolumeClaim: {claimName: NAME}}]}`:                                                        at + "volumes[0].persistentVolumeClaim.claimName",
		`{volumes: [{name: v, csi: {driver: d, nodePublishSecretRef: {name: NAME}}}]}`:                                            at + "volumes[0].csi.name",
		`{volumes: [{name: v, azureFile: {shareName: s, secretName: NAME}}]}`:                                                     at + "volumes[0]",
		`{volumes: [{name: v, iscsi: {targetPortal: "a:1", iqn: "iqn.2001-04.com.example:a", lun: 1, secretRef: {name: NAME}}}]}`: at + "volumes[0]",
		`{imagePullSecrets: [{name: other}, {name: NAME}]}`:                                                                       at + "imagePullSecrets[1].name",
		`{containers: [{name: s, image: "s:1", envFrom: [{secretRef: {name: NAME}}]}]}`:                                           at + "containers[0].envFrom[0].secretRef.name",
		`{containers: [{name: s, image: "s:1", envFrom: [{configMapRef: {name: NAME}}]}]}`:                                        at + "containers[0].envFrom[0].configMapRef.name",
		`{containers: [{name: s, image: "s:1", env: [{name: A, valueFrom: {secretKeyRef: {name: NAME, key: k}}}]}]}`:              at + "containers[0].env[0].valueFrom.secretKeyRef.name",
		`{initContainers: [{name: s, image: "s:1", env: [{name: A, valueFrom: {configMapKeyRef: {name: NAME, key: k}}}]}]}`:       at + "initContainers[0].env[0].valueFrom.configMapKeyRef.name",
	} {
		for _, name := range impossible {
			errs := judge(strings.ReplaceAll(pod, "NAME", `"`+name+`"`))
			if len(errs) == 0 || slices.ContainsFunc(errs, func(err *field.Error) bool { return err.Field != want }) {
				t.Errorf("%q in %s: %v", name, pod, errs)
			}
		}
		for _, name := range []string{"a", "a.b", "0", strings.Repeat("a", 253)} {
			if errs := judge(strings.ReplaceAll(pod, "NAME", `"`+name+`"`)); len(errs) > 0 {
				t.Errorf("%q in %s: %v", name, pod, errs)
			}
		}
		if errs := judge(strings.ReplaceAll(pod, "NAME", `""`)); len(errs) == 0 && !strings.Contains(pod, "ullSecret") && !strings.Contains(pod, "iscsi") {
			t.Errorf("an empty name in %s is not refused", pod)
		}
	}
}

// A reference in a type of volume that a later Kubernetes has is judged too, and so is that of the
// object's own fields.
func TestTheNamesOfEveryVolumeAreJudged(t *testing.T) {
	t.Parallel()
	judged := 0
	for of := range reflect.TypeFor[corev1.VolumeSource]().Fields() {
		source := corev1.VolumeSource{}
		if !setNames(reflect.ValueOf(&source).Elem().FieldByIndex(of.Index), "a/b") {
			continue
		}
		judged++
		template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: source}}}}
		errs := append(names(template), kubernetes(template)...)
		if !slices.ContainsFunc(errs, func(err *field.Error) bool { return err.BadValue == "a/b" }) {
			t.Errorf("%s: the name is not refused", of.Name)
		}
	}
	if judged < 13 {
		t.Errorf("%d types of volumes name an object, want 13 at least", judged)
	}
	p := web()
	p.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "a/b"}}
	if errs := p.Validate(nil); len(errs) != 1 || errs[0].Field != "spec.imagePullSecrets[0].name" {
		t.Errorf("spec.imagePullSecrets: %v", errs)
	}
}

// setNames sets the names of Secrets, ConfigMaps and claims in a volume, and reports whether it has
// any.
func setNames(v reflect.Value, name string) (found bool) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return setNames(v.Elem(), name)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			return setNames(v.Index(0), name)
		}
	case reflect.Struct:
		switch v.Type() {
		case reflect.TypeFor[corev1.EphemeralVolumeSource](), reflect.TypeFor[corev1.DownwardAPIVolumeSource](), reflect.TypeFor[corev1.DownwardAPIProjection]():
			return false // What they name is made with the pod, or is a field of it.
		case reflect.TypeFor[corev1.LocalObjectReference]():
			v.FieldByName("Name").SetString(name)
			return true
		}
		for part, in := range v.Fields() {
			if !in.CanSet() {
				continue
			}
			if part.Name == "SecretName" && in.Kind() == reflect.String || part.Name == "ClaimName" {
				in.SetString(name)
				found = true
			} else if in.Kind() != reflect.Pointer || in.Type().Elem().Kind() == reflect.Struct {
				found = setNames(in, name) || found
			}
		}
	}
	return found
}
