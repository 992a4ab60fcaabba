// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// state is an object in one state.
type state struct {
	// Name is the name of a test: the kind and what the state is.
	Name   string
	Object *unstructured.Unstructured
	// Ready and Reason are those of the condition Ready, empty if there is none.
	Ready  metav1.ConditionStatus
	Reason string
	// ArgoCD is the health in Argo CD, and Message is its message.
	ArgoCD, Message string
	// Flux is the status that kstatus computes.
	Flux string
}

// generation is that of all objects, and before is an earlier one.
const (
	generation = 3
	before     = 2
)

// The messages of the health in Argo CD that are not those of a condition.
const (
	notReconciled = "the controller has not reconciled the current spec yet"
	notReported   = "the controller has not reported the condition Ready yet"
	beingDeleted  = "the object is being deleted"
)

// kindsOf returns the kinds of this project, by their names.
func kindsOf(t *testing.T) map[string]schema.GroupVersionKind {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	out := map[string]schema.GroupVersionKind{}
	for gvk := range scheme.AllKnownTypes() {
		// Beside each kind a group holds its list and the options of requests.
		if gvk.Group != "" && scheme.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind+"List")) {
			out[gvk.Kind] = gvk
		}
	}
	return out
}

// statuses returns each state of each kind that can be in it.
func statuses(t *testing.T) []state {
	t.Helper()
	var out []state
	for kind, gvk := range kindsOf(t) {
		for i := range reported {
			if r := &reported[i]; r.of(kind) {
				out = append(out, r.state(gvk))
			}
		}
		for i := range others {
			out = append(out, others[i].state(gvk))
		}
	}
	return out
}

// conditions returns the conditions that the controller sets in an object of a generation.
func (r *report) conditions(generation int64) []metav1.Condition {
	var out []metav1.Condition
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	r.SetConditions(&out, generation, at)
	status.SetPaused(&out, r.paused, generation, at)
	// kstatus and the health in Argo CD must not read it.
	status.SetAvailable(&out, status.NotObserved("Deployment", generation), true, generation, at)
	return out
}

// state returns an object of a kind with the conditions of a report.
func (r *report) state(gvk schema.GroupVersionKind) state {
	ready := metav1.ConditionFalse
	if r.Ready {
		ready = metav1.ConditionTrue
	}
	message := r.Message
	if r.paused && !r.Stalled {
		message = "spec.paused is true: nothing is written for this object; its pods keep running"
	}
	name := gvk.Kind + " " + r.Reason
	if r.paused {
		name += ", paused"
	}
	return state{
		Name: name, Ready: ready, Reason: r.Reason, ArgoCD: r.argocd, Message: message, Flux: r.flux,
		Object: objectOf(gvk, map[string]any{"observedGeneration": int64(generation), "conditions": encoded(r.conditions(generation))}),
	}
}

// encoded returns conditions as they are in JSON.
func encoded(conditions []metav1.Condition) []any {
	out := make([]any, 0, len(conditions))
	for i := range conditions {
		condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err != nil {
			panic(err) // A condition has strings and numbers only.
		}
		out = append(out, condition)
	}
	return out
}

func (o *other) state(gvk schema.GroupVersionKind) state {
	obj := objectOf(gvk, o.status)
	if o.deleted {
		obj.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-02T03:04:05Z"
	}
	return state{Name: gvk.Kind + " " + o.name, Object: obj, ArgoCD: o.argocd, Message: o.message, Flux: o.flux}
}

func objectOf(gvk schema.GroupVersionKind, status any) *unstructured.Unstructured {
	obj := map[string]any{"metadata": map[string]any{"name": "web", "namespace": "team", "generation": int64(generation)}}
	if status != absent {
		obj["status"] = status
	}
	out := &unstructured.Unstructured{Object: obj}
	out.SetGroupVersionKind(gvk)
	return out.DeepCopy()
}

// healthScript is the script of all kinds, which TestPatchOfArgoCD finds in the patch for each.
func healthScript(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(root + "/config/argocd/health.lua")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// health runs a script as Argo CD does (util/lua/lua.go): with the libraries base and table, so
// without string and math, and with the object as the global variable obj.
func health(t *testing.T, script string, obj *unstructured.Unstructured) (name, message string) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	l.SetContext(t.Context())
	for library, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(library)); err != nil {
			t.Fatal(err)
		}
	}
	l.SetGlobal("obj", luaValue(l, obj.Object))
	if err := l.DoString(script); err != nil {
		t.Fatal(err)
	}
	result, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returned %v, not a table", l.Get(-1))
	}
	return result.RawGetString("status").String(), result.RawGetString("message").String()
}

// luaValue returns a JSON value for Lua, as Argo CD does; null is nil.
func luaValue(l *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case []any:
		list := l.CreateTable(len(value), 0)
		for _, item := range value {
			list.Append(luaValue(l, item))
		}
		return list
	case map[string]any:
		table := l.CreateTable(0, len(value))
		for key, item := range value {
			table.RawSetString(key, luaValue(l, item))
		}
		return table
	}
	return lua.LNil
}

// Each state of each kind has its health, with the message of the condition.
func TestHealthInArgoCD(t *testing.T) {
	for _, state := range statuses(t) {
		t.Run(state.Name, func(t *testing.T) {
			name, message := health(t, healthScript(t), state.Object)
			if name != state.ArgoCD || message != state.Message {
				t.Errorf("%s, %q; want %s, %q", name, message, state.ArgoCD, state.Message)
			}
		})
	}
}

// The output of kustomize has the script for each kind, and nothing else, so that as a patch it
// changes nothing else in argocd-cm.
func TestPatchOfArgoCD(t *testing.T) {
	want := map[string]string{}
	for _, gvk := range kindsOf(t) {
		want["resource.customizations.health."+gvk.Group+"_"+gvk.Kind] = healthScript(t)
	}
	var patch corev1.ConfigMap
	if err := yaml.UnmarshalStrict([]byte(kustomize(t, "resources: [CONFIG/argocd]")), &patch); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, patch.Data); diff != "" {
		t.Errorf("the scripts of the patch (-want +got):\n%s", diff)
	}
	patch.Data, patch.Kind, patch.APIVersion = nil, "", ""
	wantMap := corev1.ConfigMap{}
	wantMap.Name = "argocd-cm"
	if diff := cmp.Diff(wantMap, patch); diff != "" {
		t.Errorf("the rest of the patch (-want +got):\n%s", diff)
	}
}

// Flux computes the status of an object by kstatus.
func TestStatusInFlux(t *testing.T) {
	for _, state := range statuses(t) {
		result, err := kstatus.Compute(state.Object)
		if err != nil {
			t.Errorf("%s: %v", state.Name, err)
			continue
		}
		if result.Status.String() != state.Flux {
			t.Errorf("%s: %s (%s), want %s", state.Name, result.Status, result.Message, state.Flux)
		}
	}
}
