// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox_test

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
)

// filler fills objects with any values of their types.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 4).MaxDepth(12).Funcs(
		func(meta *metav1.ObjectMeta, c randfill.Continue) {
			if c.Bool() {
				meta.Name = pick(c, "web", "web.1", "")
			}
			if c.Bool() {
				meta.ManagedFields = owned(pick(c, `{}`, unrelatedFields,
					`{"f:resources":{"f:limits":{"f:cpu":{}}}}`, `{"f:readinessProbe":{"f:periodSeconds":{}}}`))
			}
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(pick(c, "1", "2Gi", "-1", "0", "1500m", "4", "1e3"))
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = pick(c, intstr.FromInt32(80), intstr.FromInt32(-1), intstr.FromString("http"), intstr.FromString("5%"), intstr.FromString(""))
		},
		func(r *runtime.RawExtension, c randfill.Continue) {
			r.Raw = []byte(pick(c, `{}`, `[]`, `{"spec":{"containers":[{"name":"web"},{"x":1}]}}`, `{"spec":{"containers":5}}`))
		},
		func(t *modelv1.ResourceType, c randfill.Continue) {
			*t = pick[modelv1.ResourceType](c, "", "small", "large", "custom", "tiny")
		},
		func(t *corev1.ServiceType, c randfill.Continue) {
			*t = pick[corev1.ServiceType](c, "", "ClusterIP", "None")
		},
		func(p *modelv1.DefaultProbes, c randfill.Continue) {
			*p = pick[modelv1.DefaultProbes](c, "", "Disabled", "Maybe")
		},
		func(p *corev1.Protocol, c randfill.Continue) { *p = pick[corev1.Protocol](c, "", "TCP", "UDP", "X") },
		func(p *modelv1.Port, c randfill.Continue) {
			c.FillNoCustom(p)
			p.Port = int32(c.Intn(4)) + 79
			p.Name = pick(c, "", "tcp-80", "tcp-81", "http", p.Name)
		},
	)
}

func pick[T any](c randfill.Continue, of ...T) T { return of[c.Intn(len(of))] }

// The properties of defaults hold for any object, also for an invalid one.
func TestAnyObject(t *testing.T) {
	t.Parallel()
	for seed := range int64(*seeds) * 10 {
		f := filler(seed)
		first, second := &modelv1.ModelBox{}, &modelv1.ModelBox{}
		f.Fill(&first.Spec)
		f.Fill(&first.ObjectMeta)
		f.Fill(&second.Spec)
		second.ObjectMeta = first.ObjectMeta
		check(t, marshal(t, first), nil)
		check(t, marshal(t, second), first)
		check(t, marshal(t, second), defaulted(first, nil))
		// An update of one field.
		second = defaulted(first, nil)
		if seed%2 == 0 {
			f.Fill(&second.Spec.Ports)
		} else {
			f.Fill(&second.Spec.ResourceType)
		}
		check(t, marshal(t, second), defaulted(first, nil))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// FuzzModelBox decodes any data as an object and as the stored object.
func FuzzModelBox(f *testing.F) {
	r := random{rand.New(rand.NewPCG(1, 2))}
	for range 20 {
		f.Add(marshal(f, manifest(r.spec())), marshal(f, manifest(r.spec())))
	}
	f.Add([]byte(`{"spec":{"ports":[null,{}],"podTemplate":{"spec":{"containers":[{"name":1}]}}}}`), []byte(`{}`))
	f.Add([]byte(`{"spec":null}`), []byte(`{"spec":{"readinessProbe":{"tcpSocket":null}}}`))
	f.Fuzz(func(t *testing.T, data, stored []byte) {
		var sent modelv1.ModelBox
		if unmarshal(data, &sent) != nil {
			return
		}
		check(t, data, nil)
		var old modelv1.ModelBox
		if unmarshal(stored, &old) == nil {
			check(t, data, &old)
			modelbox.Default(&old, nil, nil)
			check(t, data, &old)
		}
	})
}
