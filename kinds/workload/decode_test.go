// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			want: `spec.podTemplate.spec.$patch: Forbidden: directives of a strategic merge are not supported; remove it`,
		},
		"directives where any key may be": {
			raw: `{"spec":{"nodeSelector":{"$patch":"replace"},"volumes":[{"name":"a","csi":{"driver":"a","volumeAttributes":{"$retainKeys":"x"}}}]}}`,
			want: `
spec.podTemplate.spec.nodeSelector.$patch: Forbidden: directives of a strategic merge are not supported; remove it
spec.podTemplate.spec.volumes[0].csi.volumeAttributes.$retainKeys: Forbidden: directives of a strategic merge are not supported; remove it`,
		},
		"nulls in lists": {
			raw: `{"spec":{"containers":[null,{"name":"a","args":["b",null]}]}}`,
			want: `
spec.podTemplate.spec.containers[0]: Required value: an item may not be null; remove it
spec.podTemplate.spec.containers[1].args[1]: Required value: an item may not be null; remove it`,
		},
		"several, and one twice": {
			raw: `{"spec":{"containers":[{"a":1},{"b":1}],"nodeName":"x","nodeName":"y"},"kind":"Pod"}`,
			want: `
spec.podTemplate.spec.nodeName` + twice + `
spec.podTemplate.kind` + unknown + `
spec.podTemplate.spec.containers[0].a` + unknown + `
spec.podTemplate.spec.containers[1].b` + unknown,
		},
		"as much as there may be": {raw: `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", MaxSize-37) + `"}}}`},
		"too much": {
			raw: `{"metadata":{"annotations":{"a":"` + strings.Repeat("x", MaxSize-36) + `"}}}`, none: true,
			want: `spec.podTemplate: Too long: has 131073 bytes; at most 131072 are allowed; move large values and long lists to a ConfigMap or a Secret, and refer to it in envFrom or mount it as a volume`,
		},
		"expensive quantities": {
			none: true,
			raw:  `{"spec":{"overhead":{"cpu":"1e999999999"},"volumes":[{"emptyDir":{"sizeLimit":"1e-999999999"}}]}}`,
			want: `
spec.podTemplate.spec.overhead[cpu]: Invalid value: "1e999999999": must be a quantity of at most 64 characters with an exponent from -99 to 99
spec.podTemplate.spec.volumes[0].emptyDir.sizeLimit: Invalid value: "1e-999999999": must be a quantity of at most 64 characters with an exponent from -99 to 99`,
		},
		"a string":      {raw: `"a"`, none: true, want: `spec.podTemplate: Invalid value: must be an object, not string`},
		"a number":      {raw: `1`, none: true, want: `spec.podTemplate: Invalid value: must be an object, not number`},
		"a list":        {raw: `[{}]`, none: true, want: `spec.podTemplate: Invalid value: must be an object, not array`},
		"no JSON":       {raw: `{"spec":`, none: true, want: `spec.podTemplate: Invalid value: unexpected end of JSON input`},
		"JSON and more": {raw: `{}{}`, none: true, want: `spec.podTemplate: Invalid value: invalid character '{' after top-level value`},
		"wrong types, which are reported alone": {
			none: true,
			raw: `{"spec":{"containers":[{"name":"a","image":5,"imagePullPolice":1},{"name":"b","ports":{"a":1},` +
				`"resources":{"limits":{"cpu":"1x","memory":"1Gi"}}}],"volumes":"none","terminationGracePeriodSeconds":1.5}}`,
			want: `
spec.podTemplate.spec.containers[0].image: Invalid value: 5: must be a string, not number: write it in quotes ("5")
spec.podTemplate.spec.containers[1].ports: Invalid value: must be a list, not object
spec.podTemplate.spec.containers[1].resources.limits[cpu]: Invalid value: "1x": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
spec.podTemplate.spec.terminationGracePeriodSeconds: Invalid value: 1.5: must be a number of type int64, not number 1.5
spec.podTemplate.spec.volumes: Invalid value: "none": must be a list, not string`,
		},
		"a number that is too large": {
			none: true,
			raw:  `{"spec":{"priority":3000000000}}`,
			want: `spec.podTemplate.spec.priority: Invalid value: 3000000000: must be a number of type int32, not number 3000000000`,
		},
		"a label that is no string": {
			none: true,
			raw:  `{"metadata":{"labels":{"a":"b","c":true}}}`,
			want: `spec.podTemplate.metadata.labels[c]: Invalid value: true: must be a string, not bool: write it in quotes ("true")`,
		},
		"a time that is none": {
			none: true,
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

// A null is a field that is not set.
func TestDecodeOfNulls(t *testing.T) {
	t.Parallel()
	template, errs := Decode(raw(t, `{spec: {nodeSelector: {disk: null}, topologySpreadConstraints: [{topologyKey: a, labelSelector: {matchLabels: {app: null, b: c}}}]}}`))
	want := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		NodeSelector: map[string]string{},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			TopologyKey: "a", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"b": "c"}},
		}},
	}}
	if diff := cmp.Diff(want, template); diff != "" || len(errs) > 0 {
		t.Errorf("(-want +got):\n%s%v", diff, errs)
	}
}

// One wrong value is found among many, and of many the first ones.
func TestDecodeOfManyWrongValues(t *testing.T) {
	t.Parallel()
	var first []string
	for i := range rules.MaxErrors {
		first = append(first, strconv.Itoa(i))
	}
	for name, tc := range map[string]struct {
		ports string
		want  []string
	}{
		"the last": {strings.Repeat(`{"containerPort":1},`, 400) + `{"containerPort":"x"}`, []string{"400"}},
		"all":      {strings.Repeat(`{"containerPort":"x"},`, 400) + `{}`, first},
	} {
		template, errs := Decode(&runtime.RawExtension{Raw: fmt.Appendf(nil, `{"spec":{"containers":[{"name":"a","ports":[%s]}]}}`, tc.ports)})
		var got []string
		for _, err := range errs {
			rest, _ := strings.CutPrefix(err.Field, "spec.podTemplate.spec.containers[0].ports[")
			got = append(got, strings.TrimSuffix(rest, "].containerPort"))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || template != nil || len(rules.Unbuildable(errs)) != len(errs) {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What is Kubernetes' comes from the modules of go.mod.
func TestKubernetesIsTheVersionOfTheModules(t *testing.T) {
	t.Parallel()
	modules, err := os.ReadFile("../../go.mod")
	if err != nil || !strings.Contains(string(modules), "\tk8s.io/kubernetes v"+Kubernetes+".") {
		t.Errorf("Kubernetes is %s, and go.mod has another version: %v", Kubernetes, err)
	}
}
