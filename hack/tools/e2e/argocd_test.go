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

// state is what an object can report, with the health in Argo CD, its message, and the status of kstatus.
type state struct {
	name   string
	status any
	// deleted is whether the object is being deleted.
	deleted               bool
	argocd, message, flux string
}

// generation is that of all objects, and before is an earlier one.
const (
	generation = 3
	before     = 2
)

// Messages of the health in Argo CD that are not those of a condition, and that of a paused object.
const (
	notReconciled = "the controller has not reconciled the current spec yet"
	notReported   = "the controller has not reported the condition Ready yet"
	beingDeleted  = "the object is being deleted"
	pausedMessage = "spec.paused is true: nothing is written for this object; its pods keep running"
)

var (
	ready       = status.NewReady("4 of 4 pods are available")
	reconciling = status.NewReconciling("Progressing", "3 of 4 pods are available")
	stalled     = status.NewStalled("ImagePullBackOff", "0 of 4 pods are available")
	// The restart of a Deployment is what a healthy Eru does.
	restarting = status.Readiness{Ready: true, Reconciling: true, Reason: "Restarting", Message: "the restart of 2026-01-02T00:00:00Z"}
	// Neither Reconciling nor Stalled: a user has paused it, or the controller continues by itself.
	waiting = status.Readiness{Reason: "NoMatchingNodes", Message: `no node that the daemon may run on has the label "logs"`}
)

// reported is the status of a generation with the conditions that the controller sets.
func reported(r status.Readiness, generation int64, paused bool) map[string]any {
	var conditions []metav1.Condition
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	r.SetConditions(&conditions, generation, at)
	status.SetPaused(&conditions, paused, generation, at)
	// kstatus and the health in Argo CD must not read it.
	status.SetAvailable(&conditions, status.NotObserved("Deployment", generation), true, generation, at)
	out := make([]any, 0, len(conditions))
	for i := range conditions {
		condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err != nil {
			panic(err) // A condition has strings and numbers only.
		}
		out = append(out, condition)
	}
	return map[string]any{"observedGeneration": generation, "conditions": out}
}

// absent stands for an object without status.
const absent = "absent"

// states are those of each kind. The controller has more reasons, and neither Argo CD nor Flux reads one.
var states = []state{
	{name: "ready", status: reported(ready, generation, false), argocd: "Healthy", message: ready.Message, flux: "Current"},
	{name: "reconciling", status: reported(reconciling, generation, false), argocd: "Progressing", message: reconciling.Message, flux: "InProgress"},
	{name: "stalled", status: reported(stalled, generation, false), argocd: "Degraded", message: stalled.Message, flux: "Failed"},
	{name: "restarting", status: reported(restarting, generation, false), argocd: "Healthy", message: restarting.Message, flux: "InProgress"},
	{name: "waiting", status: reported(waiting, generation, false), argocd: "Progressing", message: waiting.Message, flux: "InProgress"},
	{name: "waiting, paused", status: reported(waiting, generation, true), argocd: "Suspended", message: pausedMessage, flux: "InProgress"},
	{name: "ready, paused", status: reported(ready, generation, true), argocd: "Suspended", message: pausedMessage, flux: "Current"},
	{name: "reconciling, paused", status: reported(reconciling, generation, true), argocd: "Suspended", message: pausedMessage, flux: "InProgress"},
	{name: "stalled, paused", status: reported(stalled, generation, true), argocd: "Degraded", message: stalled.Message, flux: "Failed"},

	// kstatus cannot tell an object that no controller has seen from one without a controller.
	{name: "without status", status: absent, argocd: "Progressing", message: notReconciled, flux: "Current"},
	{name: "with a status of null", status: nil, argocd: "Progressing", message: notReconciled, flux: "Current"},
	{name: "with an empty status", status: map[string]any{}, argocd: "Progressing", message: notReconciled, flux: "Current"},
	{
		name: "with conditions of null", status: map[string]any{"observedGeneration": int64(generation), "conditions": nil},
		argocd: "Progressing", message: notReconciled, flux: "Current",
	},
	{
		name: "without conditions", status: map[string]any{"observedGeneration": int64(generation), "conditions": []any{}},
		argocd: "Progressing", message: notReported, flux: "Current",
	},
	{name: "ready, with a new spec", status: reported(ready, before, false), argocd: "Progressing", message: notReconciled, flux: "InProgress"},
	{name: "stalled, with a new spec", status: reported(stalled, before, false), argocd: "Progressing", message: notReconciled, flux: "InProgress"},
	{name: "paused, with a new spec", status: reported(ready, before, true), argocd: "Progressing", message: notReconciled, flux: "InProgress"},
	{name: "ready, being deleted", status: reported(ready, generation, false), deleted: true, argocd: "Progressing", message: beingDeleted, flux: "Terminating"},
	{name: "stalled, being deleted", status: reported(stalled, generation, false), deleted: true, argocd: "Progressing", message: beingDeleted, flux: "Terminating"},
	{name: "without status, being deleted", status: absent, deleted: true, argocd: "Progressing", message: beingDeleted, flux: "Terminating"},
	{
		name: "with a condition that is unknown",
		status: map[string]any{"observedGeneration": int64(generation), "conditions": []any{
			map[string]any{"type": "LaterCondition", "status": "True", "reason": "Later", "message": "later"},
			map[string]any{"type": "Ready", "status": "Unknown", "reason": "Later", "message": "wait"},
		}},
		argocd: "Progressing", message: "wait", flux: "InProgress",
	},
	{
		name: "with fields of null",
		status: map[string]any{"observedGeneration": int64(generation), "replicas": nil, "conditions": []any{
			map[string]any{"type": "Ready", "status": "True", "reason": nil, "message": nil, "lastTransitionTime": nil},
		}},
		argocd: "Healthy", message: "", flux: "Current",
	},
}

// object returns an object of a kind in a state. The kinds have the same script, which TestPatchOfArgoCD shows.
func (s *state) object(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	metadata := map[string]any{"name": "web", "namespace": "team", "generation": int64(generation)}
	if s.deleted {
		metadata["deletionTimestamp"] = "2026-01-02T03:04:05Z"
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
	if s.status != absent {
		obj.Object["status"] = s.status
	}
	obj.SetGroupVersionKind(gvk)
	return obj.DeepCopy()
}

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

// Each state has its health in Argo CD, with the message of the condition, and its status in Flux, by kstatus.
func TestHealthInArgoCDAndFlux(t *testing.T) {
	for kind, gvk := range kindsOf(t) {
		for _, state := range states {
			t.Run(kind+" "+state.name, func(t *testing.T) {
				name, message := health(t, healthScript(t), state.object(gvk))
				if name != state.argocd || message != state.message {
					t.Errorf("%s, %q; want %s, %q", name, message, state.argocd, state.message)
				}
				if result, err := kstatus.Compute(state.object(gvk)); err != nil || result.Status.String() != state.flux {
					t.Errorf("%v %v, want %s", result, err, state.flux)
				}
			})
		}
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
