// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/api"
	clikinds "github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/plan"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// immutable fields are refused by the schema, before the policy.
var immutable = []string{"ModelBox.selector", "App.selector"}

const end = "end of the year"

// setFrozen sets or removes the annotation of a namespace, and waits until the policy of the API server knows it.
func setFrozen(t *testing.T, namespace string, frozen bool) {
	t.Helper()
	value := "null"
	if frozen {
		value = `"` + end + `"`
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, api.AnnotationFrozen, value)
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := env.Client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	probe, err := as("freeze-probe-of-" + namespace)
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := app.in(probe, namespace).Patch(ctx, "freeze-probe", types.MergePatchType, []byte(`{"spec":{"image":"a:2"}}`), metav1.PatchOptions{DryRun: dryRun})
		return (outcomeOf(err) == byFrozen) == frozen, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// newFreezable prepares the namespace of a user for setFrozen, which waits by a request of another user.
func newFreezable(t *testing.T, c tenant) {
	t.Helper()
	if err := bind(t.Context(), c.namespace, "freeze-probe-of-"+c.namespace, "edit"); err != nil {
		t.Fatal(err)
	}
	if _, err := app.in(admin(t), c.namespace).Create(t.Context(), app.object("freeze-probe", spec{"image": "a:1"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// templateOf returns the pod template that the operator builds from an object.
func templateOf(t *testing.T, obj *unstructured.Unstructured) any {
	t.Helper()
	k, err := clikinds.Find(obj.GetKind())
	if err != nil {
		t.Fatal(err)
	}
	typed := k.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed); err != nil {
		t.Fatal(err)
	}
	k.SetStored(typed)
	children, err := k.Children(typed, models.Fetcher{})
	if err != nil {
		t.Fatal(err)
	}
	plan.KeepConfiguration(obj, children[0], children[0])
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(children[0])
	if err != nil {
		t.Fatal(err)
	}
	template, _, _ := unstructured.NestedMap(content, "spec", "template")
	return template
}

// Each field of each kind: its change is refused exactly if it changes the pod template, and of an object
// that has returned from a failed rollout, if it changes what is rolled out.
func TestAFreezeRefusesWhatReplacesPods(t *testing.T) {
	t.Parallel()
	tb := readTable(t)
	c := user(t, "freeze", nil, "", tb.rolesOf(t, []string{"edit", "optional"})...)
	newFreezable(t, c)
	edits := readEdits(t)
	stored := map[string]*unstructured.Unstructured{}
	for _, k := range podKinds {
		for field := range specOf(t, k).Properties {
			if edits[field][1] == "" {
				t.Errorf("the schema of %s has the field %s: add an edit of it to this test", k.name, field)
				continue
			}
			s := decoded(t, `{image: "a:1", `+edits[field][0]+`}`)
			obj, err := k.in(c, c.namespace).Create(t.Context(), k.object(strings.ToLower(field), s), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			stored[k.name+"."+field] = obj
			if k.name != "Genericdaemon" {
				stored["returned "+k.name+"."+field] = newReturned(t, c, k, obj)
			}
		}
	}
	setFrozen(t, c.namespace, true)
	used := map[string]bool{}
	for _, k := range podKinds {
		for field := range specOf(t, k).Properties {
			if stored[k.name+"."+field] == nil {
				continue
			}
			used[field] = true
			edit := decoded(t, "{"+edits[field][1]+"}")
			checkEdit(t, c, k, field, edit, stored[k.name+"."+field], templateOf)
			if obj := stored["returned "+k.name+"."+field]; obj != nil {
				checkEdit(t, c, k, field, edit, obj, rolledOut)
			}
		}
	}
	for field := range edits {
		if !used[field] {
			t.Errorf("no kind has the field %s", field)
		}
	}
	setFrozen(t, c.namespace, false)
}

// newReturned creates an object like another one, whose rollout has failed.
func newReturned(t *testing.T, c tenant, k kind, like *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	obj := k.object("returned-"+like.GetName(), like.Object["spec"].(map[string]any))
	obj, err := k.in(admin(t), c.namespace).Create(t.Context(), obj, metav1.CreateOptions{})
	if err == nil {
		obj, err = k.in(admin(t), c.namespace).Patch(t.Context(), obj.GetName(), types.MergePatchType,
			[]byte(`{"status":{"rollout":{"failed":"it crashes"}}}`), metav1.PatchOptions{}, "status")
	}
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// rolledOut returns what a rollout of an object rolls out, and whether it returns if that fails.
func rolledOut(t *testing.T, obj *unstructured.Unstructured) any {
	t.Helper()
	data, _, err := workload.RolledOut(obj.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	on, _, _ := unstructured.NestedString(obj.Object, "spec", "onFailedRollout")
	return string(data) + on
}

// readEdits reads testdata/edits.yaml: edits of one field of a spec that has an image, before and after.
// Whether one changes the pod template is computed, so a new field needs a row there, and, if it reaches
// the template, its name in frozen.yaml.
func readEdits(t *testing.T) (out map[string][2]string) {
	t.Helper()
	data, err := os.ReadFile("testdata/edits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// checkEdit expects that an edit is refused exactly if it changes what is built of an object.
func checkEdit(
	t *testing.T, c tenant, k kind, field string, s spec, obj *unstructured.Unstructured, built func(*testing.T, *unstructured.Unstructured) any,
) {
	t.Helper()
	edited := obj.DeepCopy()
	maps.Copy(edited.Object["spec"].(map[string]any), s)
	_, err := k.in(c, c.namespace).Update(t.Context(), edited, metav1.UpdateOptions{})
	name, want := k.name+"."+field, allowed
	if apierrors.IsInvalid(err) {
		if !strings.Contains(strings.Join(immutable, " "), name) {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	if !reflect.DeepEqual(built(t, obj), built(t, edited)) {
		want = byFrozen
	}
	got := outcomeOf(err)
	if got != want {
		t.Errorf("%s: %s, want %s: list the field in frozen.yaml exactly if it reaches the pod template (%v)", name, got, want, err)
	}
	if got == byFrozen && !strings.Contains(err.Error(), "is frozen ("+end+"), and a change of spec."+field+" replaces pods; wait until") {
		t.Errorf("%s: the message has no reason, field or way out: %v", name, err)
	}
}
