// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/test/statuses"
)

// healthScript is the script of all kinds, which TestPatchOfArgoCD finds in the patch for each.
func healthScript(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("argocd/health.lua")
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
	for _, state := range statuses.All(t) {
		t.Run(state.Name, func(t *testing.T) {
			name, message := health(t, healthScript(t), state.Object)
			if name != state.ArgoCD || message != state.Message {
				t.Errorf("%s, %q; want %s, %q", name, message, state.ArgoCD, state.Message)
			}
		})
	}
}

// Objects that were stored by a control plane have the health of their condition Ready.
func TestHealthOfRecordedObjects(t *testing.T) {
	files, err := filepath.Glob("../controller/testdata/v0.1.0/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	kinds, seen := statuses.Kinds(t), map[string]int{}
	for _, file := range files {
		for _, obj := range recorded(t, file) {
			if _, ours := kinds[obj.GetKind()]; ours && obj.GetGeneration() > 0 {
				name, message := health(t, healthScript(t), obj)
				seen[name]++
				if want := healthOf(t, obj); name != want {
					t.Errorf("%s: %s (%s), want %s", file, name, message, want)
				}
			}
		}
	}
	for _, name := range []string{statuses.Healthy, statuses.Progressing, statuses.Suspended, statuses.Degraded} {
		if seen[name] == 0 {
			t.Errorf("no recorded object is %s", name)
		}
	}
}

// recorded returns the objects of a file.
func recorded(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(obj)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, obj)
	}
}

// healthOf returns the health that follows from the reason of Ready and from spec.paused.
func healthOf(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	pausedSpec, _, _ := unstructured.NestedBool(obj.Object, "spec", "paused")
	for _, condition := range conditions {
		ready := condition.(map[string]any)
		switch {
		case ready["type"] != "Ready":
		case pausedSpec:
			return statuses.Suspended
		case ready["status"] == "True":
			return statuses.Healthy
		case ready["reason"] == "Progressing":
			return statuses.Progressing
		default:
			return statuses.Degraded
		}
	}
	return statuses.Progressing
}

// The output of kustomize has the script for each kind, and nothing else, so that as a patch it
// changes nothing else in argocd-cm.
func TestPatchOfArgoCD(t *testing.T) {
	want := map[string]string{}
	for _, gvk := range statuses.Kinds(t) {
		want["resource.customizations.health."+gvk.Group+"_"+gvk.Kind] = healthScript(t)
	}
	var patch corev1.ConfigMap
	if err := yaml.UnmarshalStrict([]byte(kustomize(t, "argocd")), &patch); err != nil {
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

// The patches of the CRDs in docs/gitops.md, which keep GitOps tools from deleting them, apply.
func TestPatchThatKeepsCRDs(t *testing.T) {
	page, err := os.ReadFile("../docs/gitops.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "\n      patches:\n")
	block, _, ended := strings.Cut(block, "\n\n")
	crd, err := filepath.Abs("crd")
	folder := t.TempDir()
	if !found || !ended || err != nil {
		t.Fatalf("docs/gitops.md has no block of patches (%v)", err)
	}
	relative, err := filepath.Rel(folder, crd)
	if err != nil {
		t.Fatal(err)
	}
	text := "resources: [" + relative + "]\npatches:\n" + strings.ReplaceAll("\n"+block, "\n      ", "\n")
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	objects := render(t, folder)
	if len(objects) != len(statuses.Kinds(t)) {
		t.Errorf("%d CRDs", len(objects))
	}
	for _, obj := range objects {
		of := obj.meta.GetAnnotations()
		if of["argocd.argoproj.io/sync-options"] != "Prune=false,Delete=false" || of["kustomize.toolkit.fluxcd.io/prune"] != "disabled" {
			t.Errorf("%s has the annotations %v", obj, of)
		}
	}
}
