// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

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
