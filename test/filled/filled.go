// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package filled fills objects with random values that an API server can store, for
// tests that compare two ways to decode, store or compare objects.
package filled

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

// Filler returns a filler that gives valid values to the types with their own JSON
// encoding. The same seed gives the same sequence of objects. The caller sets the
// probability of empty fields.
func Filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).MaxDepth(12).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = *resource.NewMilliQuantity(c.Int63n(1e6), resource.DecimalSI)
		},
		func(r *runtime.RawExtension, _ randfill.Continue) { r.Raw = []byte(`{"spec":{"a":[1,null,"x"]}}`) },
		func(f *metav1.FieldsV1, _ randfill.Continue) { *f = *metav1.NewFieldsV1(`{"f:spec":{}}`) },
		func(p *intstr.IntOrString, c randfill.Continue) {
			if *p = intstr.FromInt32(c.Int31()); c.Bool() {
				*p = intstr.FromString(c.String(4))
			}
		},
		func(m *metav1.Time, c randfill.Continue) { *m = metav1.Unix(c.Int63n(4e9), 0) },
	)
}
