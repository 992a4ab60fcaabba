// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"reflect"
	"strconv"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/test/filled"
)

// fill fills an object with values that an API server could store. Each run with the same
// seed has the same values.
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

// TestDifferencesAreWhatAnApplyWouldChange compares the comparison of Go values with the
// library by which the API server merges an apply: a field differs if an apply would change
// it, or if it is a second member of a union.
func TestDifferencesAreWhatAnApplyWouldChange(t *testing.T) {
	t.Parallel()
	const rounds = 400
	for _, desired := range childTypes() {
		kind := desired.GetObjectKind().GroupVersionKind()
		unchanged := 0
		for seed := range int64(rounds) {
			fill(seed, desired, 0.8)
			desired.GetObjectKind().SetGroupVersionKind(kind)
			live := desired.DeepCopyObject().(client.Object)
			if len(differences(desired, live)) > 0 {
				t.Errorf("%T of seed %d differs from itself at %s", desired, seed, firstDifference(desired, live))
			}
			refillOneField(seed, live)
			changed := applied(t, desired, live)
			for _, d := range differences(desired, live) {
				if union := !d.want.IsValid(); !changed && !union {
					t.Errorf("%T of seed %d differs at %s, and an apply changes nothing", desired, seed, d.field)
				}
			}
			if changed && len(differences(desired, live)) == 0 {
				t.Errorf("%T of seed %d has no difference, but an apply changes something: %s", desired, seed, compared(t, desired, live))
			}
			if live = patched(t, live, differences(desired, live)); len(differences(desired, live)) > 0 {
				t.Errorf("%T of seed %d still differs at %s after a JSON patch", desired, seed, firstDifference(desired, live))
			}
			if !changed {
				unchanged++
			}
		}
		if unchanged < rounds/10 || unchanged > rounds-rounds/10 {
			t.Errorf("an apply changes nothing in %d of %d pairs of %T: too few of one sort are tested", unchanged, rounds, desired)
		}
	}
}

// patched returns live after the JSON patch that sets what differs.
func patched(t *testing.T, live client.Object, found []difference) client.Object {
	t.Helper()
	patch, _, err := jsonPatch(live, found)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(live)
	if err != nil {
		t.Fatal(err)
	}
	after, err := decoded.Apply(before)
	if err != nil {
		t.Fatalf("%s\ndoes not apply to\n%s\n%v", patch, before, err)
	}
	into := kinds.NewOf(live)
	if err := json.Unmarshal(after, into); err != nil {
		t.Fatal(err)
	}
	return into
}

// refillOneField fills one field of the spec again.
func refillOneField(seed int64, obj client.Object) {
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

// applied reports whether an apply of desired would change live.
func applied(t *testing.T, desired, live client.Object) bool {
	t.Helper()
	return !compared(t, desired, live).IsSame()
}

func compared(t *testing.T, desired, live client.Object) *typed.Comparison {
	t.Helper()
	desired = desired.DeepCopyObject().(client.Object)
	withoutEmpty(reflect.ValueOf(desired).Elem()) // An apply adds them, which has no effect.
	before := asApplied(t, live)
	after, err := before.Merge(asApplied(t, desired))
	if err != nil {
		t.Fatal(err)
	}
	comparison, err := before.Compare(after)
	if err != nil {
		t.Fatal(err)
	}
	return comparison
}

// asApplied returns an object as an apply sends it. Quantities are as the API server stores
// them.
func asApplied(t *testing.T, obj client.Object) *typed.TypedValue {
	t.Helper()
	content, err := kinds.Content(obj)
	if err != nil {
		t.Fatal(err)
	}
	return typedValue(t, &unstructured.Unstructured{Object: content})
}
