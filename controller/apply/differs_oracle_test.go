// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	"github.com/modelbox-operator/modelbox-operator/hack/filled"
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
	)
}

// TestDiffersIsWhatJSONSays compares differs, which walks Go values, with the plain way
// to say the same: of the JSON of two objects, the first is in the second.
func TestDiffersIsWhatJSONSays(t *testing.T) {
	for _, desired := range []client.Object{&appsv1.Deployment{}, &appsv1.DaemonSet{}, &corev1.Service{}} {
		alike := 0
		const rounds = 400
		for seed := range int64(rounds) {
			fill(seed, desired, 0.8)
			live := desired.DeepCopyObject().(client.Object)
			if at := differs(desired, live); at != "" {
				t.Errorf("%T of seed %d differs from itself at %s", desired, seed, at)
			}
			elsewhere(seed, live)
			want, err := treeDiffers(desired, live)
			if err != nil {
				t.Fatal(err)
			}
			if got := differs(desired, live); (got == "") != (want == "") {
				t.Errorf("%T of seed %d differs at %q, by JSON at %q", desired, seed, got, want)
			}
			if want == "" {
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

// treeDiffers names the first field, by its path, in which live is not as desired
// says, or "" if there is none. What desired does not say is not looked at: it
// belongs to the cluster or to somebody else.
func treeDiffers(desired, live client.Object) (string, error) {
	want, err := tree(desired)
	if err != nil {
		return "", err
	}
	have, err := tree(live)
	if err != nil {
		return "", err
	}
	return treeDifference("", want, have), nil
}

// tree is an object without its type, which the cache drops, and its status,
// which is not ours to say.
func tree(obj client.Object) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("converting %s %q: %w", kindOf(obj), obj.GetName(), err)
	}
	delete(out, "apiVersion")
	delete(out, "kind")
	delete(out, "status")
	return out, nil
}

func treeDifference(path string, want, have any) string {
	switch want := want.(type) {
	case map[string]any:
		return treeMapDifference(path, want, have)
	case []any:
		return treeListDifference(path, want, have)
	}
	if want == have {
		return ""
	}
	return path
}

func treeMapDifference(path string, want map[string]any, have any) string {
	haveMap, ok := have.(map[string]any)
	if !ok && len(want) > 0 {
		return path
	}
	for _, key := range sortedKeys(want) {
		if want[key] == nil {
			continue // A pointer that its type cannot leave out: it says nothing.
		}
		if at := treeDifference(treeJoin(path, key), want[key], haveMap[key]); at != "" {
			return at
		}
	}
	return ""
}

func treeListDifference(path string, want []any, have any) string {
	haveList, _ := have.([]any)
	keys := listKeys[path[strings.LastIndexByte(path, '.')+1:]]
	if keys == nil && len(want) != len(haveList) {
		return path
	}
	for i, item := range want {
		other, at := treeCounterpart(path, keys, i, item, haveList)
		if other == nil {
			return at
		}
		if at := treeDifference(at, item, other); at != "" {
			return at
		}
	}
	return ""
}

// counterpart finds the item of a list that an item is to be compared with: the
// one of equal keys, or in an atomic list the one in the same place. A key that
// the item leaves out, such as a container port's protocol, has a default on the
// server and matches any.
func treeCounterpart(path string, keys []string, i int, item any, list []any) (any, string) {
	if keys == nil {
		return list[i], fmt.Sprintf("%s[%d]", path, i)
	}
	want, _ := item.(map[string]any)
	at := fmt.Sprintf("%s[%s]", path, keyText(keys, want))
	found := slices.IndexFunc(list, func(other any) bool {
		have, _ := other.(map[string]any)
		return !slices.ContainsFunc(keys, func(key string) bool {
			value, said := want[key]
			return said && value != have[key]
		})
	})
	if found < 0 {
		return nil, at
	}
	return list[found], at
}

func keyText(keys []string, item map[string]any) string {
	var parts []string
	for _, key := range keys {
		if value, ok := item[key]; ok {
			parts = append(parts, fmt.Sprintf("%s=%v", key, value))
		}
	}
	return strings.Join(parts, ",")
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func treeJoin(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
