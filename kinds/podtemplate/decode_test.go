// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	const (
		unknown = `: Forbidden: Kubernetes 1.37, which this release is built for, has no such field; check its name and its position`
		twice   = `: Forbidden: the field is set twice; remove one of them`
	)
	for name, tc := range map[string]struct {
		raw, want string
		// none says that there is no template, or nothing of it could be understood.
		none bool
	}{
		"nothing":    {raw: ``, none: true},
		"null":       {raw: `null`, none: true},
		"empty":      {raw: `{}`},
		"a template": {raw: `{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"b"}]}}`},
		"nulls":      {raw: `{"metadata":null,"spec":{"containers":null,"nodeName":null}}`},
		"an unknown field": {
			raw:  `{"spec":{"containers":[{"name":"a","imagePullPolice":"Always"}]}}`,
			want: `spec.podTemplate.spec.containers[0].imagePullPolice` + unknown,
		},
		"a field in another case": {
			raw:  `{"Spec":{}}`,
			want: `spec.podTemplate.Spec` + unknown,
		},
		"a field in another place": {
			raw:  `{"containers":[]}`,
			want: `spec.podTemplate.containers` + unknown,
		},
		"a directive of a strategic merge": {
			raw:  `{"spec":{"$patch":"replace"}}`,
			want: `spec.podTemplate.spec.$patch` + unknown,
		},
		"several, and one twice": {
			raw: `{"spec":{"containers":[{"a":1},{"b":1}],"nodeName":"x","nodeName":"y"},"kind":"Pod"}`,
			want: `
spec.podTemplate.spec.containers[0].a` + unknown + `
spec.podTemplate.spec.containers[1].b` + unknown + `
spec.podTemplate.spec.nodeName` + twice + `
spec.podTemplate.kind` + unknown,
		},
		"as much as there may be": {raw: `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", MaxSize-37) + `"}}}`},
		"too much": {
			raw: `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", MaxSize-36) + `"}}}`, none: true,
			want: `spec.podTemplate: Too long: may not be more than 131072 bytes; move large values and long lists to a ConfigMap or a Secret, and refer to it in envFrom or mount it as a volume`,
		},
		"expensive quantities": {
			raw: `{"spec":{"overhead":{"cpu":"1e999999999"},"volumes":[{"emptyDir":{"sizeLimit":"1e-999999999"}}]}}`,
			want: `
spec.podTemplate.spec.overhead[cpu]: Invalid value: "1e999999999": must have an exponent from -99 to 99
spec.podTemplate.spec.volumes[0].emptyDir.sizeLimit: Invalid value: "1e-999999999": must have an exponent from -99 to 99`,
		},
		"a string":      {raw: `"a"`, none: true, want: `spec.podTemplate: Invalid value: "a": must be of type v1.PodTemplateSpec, not string`},
		"a number":      {raw: `1`, none: true, want: `spec.podTemplate: Invalid value: 1: must be of type v1.PodTemplateSpec, not number`},
		"a list":        {raw: `[{}]`, none: true, want: `spec.podTemplate: Invalid value: must be of type v1.PodTemplateSpec, not array`},
		"no JSON":       {raw: `{"spec":`, none: true, want: `spec.podTemplate: Invalid value: unexpected end of JSON input`},
		"JSON and more": {raw: `{}{}`, none: true, want: `spec.podTemplate: Invalid value: invalid character '{' after top-level value`},
		"wrong types, with what else is wrong": {
			raw: `{"spec":{"containers":[{"name":"a","image":5,"imagePullPolice":1},{"name":"b","ports":{"a":1},` +
				`"resources":{"limits":{"cpu":"1x","memory":"1Gi"}}}],"volumes":"none","terminationGracePeriodSeconds":1.5}}`,
			want: `
spec.podTemplate.spec.containers[0].image: Invalid value: 5: must be of type string, not number: write it in quotes ("5")
spec.podTemplate.spec.containers[1].ports: Invalid value: must be of type []v1.ContainerPort, not object
spec.podTemplate.spec.containers[1].resources.limits[cpu]: Invalid value: "1x": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
spec.podTemplate.spec.terminationGracePeriodSeconds: Invalid value: 1.5: must be of type int64, not number 1.5
spec.podTemplate.spec.volumes: Invalid value: "none": must be of type []v1.Volume, not string
spec.podTemplate.spec.containers[0].imagePullPolice` + unknown,
		},
		"a number that is too large": {
			raw:  `{"spec":{"priority":3000000000}}`,
			want: `spec.podTemplate.spec.priority: Invalid value: 3000000000: must be of type int32, not number 3000000000`,
		},
		"a label that is no string": {
			raw:  `{"metadata":{"labels":{"a":"b","c":true}}}`,
			want: `spec.podTemplate.metadata.labels[c]: Invalid value: true: must be of type string, not bool: write it in quotes ("true")`,
		},
		"a time that is none": {
			raw:  `{"metadata":{"creationTimestamp":"yesterday"}}`,
			want: `spec.podTemplate.metadata.creationTimestamp: Invalid value: "yesterday": parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			template, errs := Decode(&runtime.RawExtension{Raw: []byte(tc.raw)})
			if got, want := ruletest.Lines(errs), strings.TrimSpace(tc.want); got != want {
				t.Errorf("errors:\n%s\nwant:\n%s", got, want)
			}
			if (template == nil) != tc.none {
				t.Errorf("template = %v", template)
			}
		})
	}
	if template, errs := Decode(nil); template != nil || errs != nil {
		t.Errorf("nil: %v %v", template, errs)
	}
}

// The valid fields of a template are decoded, so that one error does not hide others.
func TestDecodeWithoutInvalidFields(t *testing.T) {
	t.Parallel()
	template, errs := Decode(&runtime.RawExtension{Raw: []byte(`{"spec":{"hostNetwork":5,"nodeName":"a","volumes":[{"name":"v"},7,{"name":"w"}],` +
		`"nodeSelector":{"x":1,"y":"z"},"containers":[{"name":"side","image":"A B","resources":{"limits":{"cpu":"1e999","memory":1.5}}}]}}`)})
	want := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		NodeName: "a", Volumes: []corev1.Volume{{Name: "v"}, {}, {Name: "w"}}, NodeSelector: map[string]string{"y": "z"},
		Containers: []corev1.Container{{Name: "side", Image: "A B", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1.5")},
		}}},
	}}
	if diff := cmp.Diff(want, template); diff != "" {
		t.Errorf("the template (-want +got):\n%s", diff)
	}
	if len(errs) != 4 || len(rules.Unbuildable(errs)) != 4 {
		t.Errorf("errors: %v", errs)
	}
}

// A template with too many values to repair is refused as a whole.
func TestDecodeOfManyWrongValues(t *testing.T) {
	t.Parallel()
	ports := strings.Repeat(`{"containerPort":1},`, 20_000) + `{"containerPort":"x"}`
	data := fmt.Sprintf(`{"spec":{"containers":[{"name":"a","ports":[%s]}]}}`, ports)
	template, errs := Decode(&runtime.RawExtension{Raw: []byte(data)})
	if template != nil || len(errs) != 1 || errs[0].Field != "spec.podTemplate" {
		t.Errorf("errors = %v, template = %v", errs, template != nil)
	}
}
