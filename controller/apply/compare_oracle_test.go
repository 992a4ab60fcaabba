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

// TestDifferencesAreWhatAnApplyWouldChange compares two objects with what the merge of an apply would change: a field differs
// if an apply would change it, or if it is a second member of a union.
func TestDifferencesAreWhatAnApplyWouldChange(t *testing.T) {
	t.Parallel()
	const rounds = 400
	for _, desired := range children() {
		kind := desired.GetObjectKind().GroupVersionKind()
		unchanged := 0
		for seed := range int64(rounds) {
			fill(seed, desired, 0.8)
			desired.GetObjectKind().SetGroupVersionKind(kind)
			live := desired.DeepCopyObject().(client.Object)
			if found := differing(t, desired, live); len(found) > 0 {
				t.Errorf("%T of seed %d differs from itself at %s", desired, seed, found[0].field)
			}
			refillOneField(seed, live)
			changes, found := applied(t, desired, live), differing(t, desired, live)
			for _, d := range found {
				if union := d.want == nil; len(changes) == 0 && !union {
					t.Errorf("%T of seed %d differs at %s, and an apply changes nothing", desired, seed, d.field)
				}
			}
			if len(changes) > 0 && len(found) == 0 {
				t.Errorf("%T of seed %d has no difference, but an apply changes something: %s", desired, seed, changes)
			}
			if left := differing(t, desired, patched(t, live, found)); len(left) > 0 {
				t.Errorf("%T of seed %d still differs at %s after a merge patch", desired, seed, left[0].field)
			}
			if len(changes) == 0 {
				unchanged++
			}
		}
		if unchanged < rounds/10 || unchanged > rounds-rounds/10 {
			t.Errorf("an apply changes nothing in %d of %d pairs of %T: too few of one sort are tested", unchanged, rounds, desired)
		}
	}
}

// patched returns live after the merge patch that sets what differs.
func patched(t *testing.T, live client.Object, found []difference) client.Object {
	t.Helper()
	patch, _, err := mergePatch(live, found)
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(live)
	if err != nil {
		t.Fatal(err)
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		t.Fatalf("%s\ndoes not apply to\n%s\n%v", patch, before, err)
	}
	into := NewOf(live)
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

// applied returns what an apply of desired would change in live, without the empty structs that it adds, which have no effect.
func applied(t *testing.T, desired, live client.Object) (changes []string) {
	t.Helper()
	want, have := asApplied(t, desired), asApplied(t, live)
	after, err := have.Merge(want)
	if err != nil {
		t.Fatal(err)
	}
	compared, err := have.Compare(after)
	if err != nil {
		t.Fatal(err)
	}
	for p := range compared.Added.Union(compared.Modified).Union(compared.Removed).All() {
		if !compared.Added.Has(p) || !isEmpty(valueOf(after.AsValue().Unstructured(), p)) || hasEffect(p) {
			changes = append(changes, p.String())
		}
	}
	return changes
}

// asApplied returns an object as an apply sends it. Quantities are as the API server stores
// them.
func asApplied(t *testing.T, obj client.Object) *typed.TypedValue {
	t.Helper()
	content, err := contentOf(obj)
	if err != nil {
		t.Fatal(err)
	}
	setDefaults("", content)
	value, err := schemaOfKubernetes().ObjectToTyped(&unstructured.Unstructured{Object: content})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// children returns an empty object of each type of child, with TypeMeta.
func children() []client.Object {
	deployment, daemonSet, service := &appsv1.Deployment{}, &appsv1.DaemonSet{}, &corev1.Service{}
	deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	daemonSet.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
	service.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	return []client.Object{deployment, daemonSet, service}
}

// differing returns the differences of two objects.
func differing(t *testing.T, desired, live client.Object) []difference {
	t.Helper()
	found, err := differences(desired, live)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
