// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/modelbox-operator/modelbox-operator/test/filled"
)

// fill fills objects with what can be read back from an API server. The seed makes
// each run the same.
func fill(seed int64, obj client.Object, empty float64) {
	reflect.ValueOf(obj).Elem().SetZero()
	filler(seed, empty).Fill(obj)
}

func filler(seed int64, empty float64) *randfill.Filler {
	return filled.Filler(seed).NilChance(empty).NumElements(1, 3).Funcs(
		func(t *metav1.TypeMeta, _ randfill.Continue) { *t = metav1.TypeMeta{} },
		func(m *[]metav1.ManagedFieldsEntry, _ randfill.Continue) { *m = nil },
		// No two items of a list have the same keys.
		func(s *string, c randfill.Continue) { *s = strconv.Itoa(c.Int()) },
		// Nor has a set the same value twice.
		func(rule *corev1.ContainerRestartRuleOnExitCodes, _ randfill.Continue) { rule.Values = []int32{1, 2} },
		func(owners *[]metav1.OwnerReference, c randfill.Continue) {
			*owners = []metav1.OwnerReference{{Name: "owner", UID: types.UID(strconv.Itoa(c.Int()))}}
		},
	)
}

// TestDifferencesAreWhatAnApplyWouldChange compares the walk over Go values with the
// library that the API server merges an apply with: a field differs if an apply would
// change it. What an apply does not see is a second member of a union.
func TestDifferencesAreWhatAnApplyWouldChange(t *testing.T) {
	t.Parallel()
	const rounds = 400
	for _, desired := range children() {
		kind := desired.GetObjectKind().GroupVersionKind()
		alike := 0
		for seed := range int64(rounds) {
			fill(seed, desired, 0.8)
			desired.GetObjectKind().SetGroupVersionKind(kind)
			live := desired.DeepCopyObject().(client.Object)
			if !same(desired, live) {
				t.Errorf("%T of seed %d differs from itself at %s", desired, seed, firstDifference(desired, live))
			}
			elsewhere(seed, live)
			changed := applied(t, desired, live)
			for _, d := range differences(desired, live) {
				if union := !d.want.IsValid() && !d.path[len(d.path)-1].whole; !changed && !union {
					t.Errorf("%T of seed %d differs at %s, and an apply changes nothing", desired, seed, d.path)
				}
			}
			if changed && same(desired, live) {
				t.Errorf("%T of seed %d has no difference, but an apply changes something: %s", desired, seed, compared(t, desired, live))
			}
			overlay(desired, live)
			if !same(desired, live) {
				t.Errorf("%T of seed %d still differs at %s after an overlay", desired, seed, firstDifference(desired, live))
			}
			if !changed {
				alike++
			}
		}
		if alike < rounds/10 || alike > rounds-rounds/10 {
			t.Errorf("%d of %d pairs of %T are alike: the others or these are hardly looked at", alike, rounds, desired)
		}
	}
}

// elsewhere fills one field of what matters in an object anew.
func elsewhere(seed int64, obj client.Object) {
	var of reflect.Value
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		of = reflect.ValueOf(&obj.Spec.Template.Spec).Elem()
	case *appsv1.DaemonSet:
		of = reflect.ValueOf(&obj.Spec).Elem()
	case *corev1.Service:
		of = reflect.ValueOf(&obj.Spec).Elem()
	}
	filler(seed+1, 0.4).Fill(of.Field(int(seed) % of.NumField()).Addr().Interface())
}

// applied tells whether an apply of desired would change live.
func applied(t *testing.T, desired, live client.Object) bool {
	t.Helper()
	return !compared(t, desired, live).IsSame()
}

func compared(t *testing.T, desired, live client.Object) *typed.Comparison {
	t.Helper()
	desired = desired.DeepCopyObject().(client.Object)
	withoutEmpty(reflect.ValueOf(desired).Elem()) // An apply adds them, and nothing depends on that.
	before := withoutNulls(t, live)
	after, err := before.Merge(withoutNulls(t, desired))
	if err != nil {
		t.Fatal(err)
	}
	comparison, err := before.Compare(after)
	if err != nil {
		t.Fatal(err)
	}
	return comparison
}

// withoutNulls is an object as an apply would send it. Quantities are as the API server
// would store them.
func withoutNulls(t *testing.T, obj client.Object) *typed.TypedValue {
	t.Helper()
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	delete(tree, "status")
	dropNulls(tree)
	return typedValue(t, &unstructured.Unstructured{Object: tree})
}

func dropNulls(node any) {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			if value == nil {
				delete(node, key)
				continue
			}
			dropNulls(value)
		}
	case []any:
		for _, value := range node {
			dropNulls(value)
		}
	}
}
