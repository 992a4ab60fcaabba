// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/test/statuses"
)

const gitopsPage = "gitops.md"

// Flux computes the status of an object by kstatus.
func TestStatusInFlux(t *testing.T) {
	t.Parallel()
	for _, state := range statuses.All(t) {
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

var codeWord = regexp.MustCompile("`([A-Za-z]+)`")

// Each reason of Ready, of each kind, is among the states that the tests of the health run over.
func TestEveryReasonHasAHealth(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, state := range statuses.All(t) {
		known[fmt.Sprint(state.Object.GetKind(), state.Ready, state.Reason)] = true
	}
	rows := 0
	for _, row := range reasonRows(t, troubleshooting) {
		cells := strings.Split(row, " | ")
		if cells[1] != "True" && cells[1] != "False" {
			continue // The history of an Eru.
		}
		rows++
		for kind := range strings.SplitSeq(cells[0], ", ") {
			for _, reason := range codeWord.FindAllStringSubmatch(cells[2], -1) {
				if !known[fmt.Sprint(kind, cells[1], reason[1])] {
					t.Errorf("test/statuses has no %s with Ready %s and the reason %s", kind, cells[1], reason[1])
				}
			}
		}
	}
	if rows < 20 {
		t.Errorf("only %d rows of reasons were found in %s", rows, troubleshooting)
	}
}

// The table of the page has each reason beside its health in Argo CD and its status in Flux.
func TestTableOfHealth(t *testing.T) {
	t.Parallel()
	want := map[string]map[string]bool{}
	for _, state := range statuses.All(t) {
		if state.Reason == "" || strings.HasPrefix(state.Reason, "LaterReason") || strings.HasSuffix(state.Name, ", paused") && state.Reason != "Paused" {
			continue
		}
		add(want, state.Reason, state.ArgoCD+" and "+state.Flux)
	}
	got := map[string]map[string]bool{}
	for line := range strings.Lines(read(t, gitopsPage)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 4 {
			continue
		}
		for _, reason := range codeWord.FindAllStringSubmatch(cells[3], -1) {
			add(got, reason[1], cells[1]+" and "+cells[2])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the reasons in the table of %s (-tests +page):\n%s", gitopsPage, diff)
	}
}

func add(to map[string]map[string]bool, key, value string) {
	if to[key] == nil {
		to[key] = map[string]bool{}
	}
	to[key][value] = true
}

// check is an item of spec.healthCheckExprs of a Kustomization of Flux.
type check struct {
	APIVersion, Kind string
	Failed, Current  string
}

// The expressions of the page give the status of kstatus, with the exceptions that it names.
func TestExpressionsForFlux(t *testing.T) {
	t.Parallel()
	checks := map[string]check{}
	for _, manifest := range manifests(read(t, gitopsPage)) {
		var kustomization struct {
			Spec struct{ HealthCheckExprs []check }
		}
		if err := yaml.Unmarshal([]byte(manifest), &kustomization); err != nil {
			t.Fatal(err)
		}
		for _, c := range kustomization.Spec.HealthCheckExprs {
			checks[c.APIVersion+" "+c.Kind] = c
		}
	}
	kinds := statuses.Kinds(t)
	if len(checks) != len(kinds) {
		t.Errorf("%s has expressions for %v", gitopsPage, slices.Sorted(maps.Keys(checks)))
	}
	for _, state := range statuses.All(t) {
		want := state.Flux
		switch {
		case want == statuses.Terminating:
			continue // Flux does not evaluate them.
		case want == statuses.Current && state.ArgoCD == statuses.Progressing:
			want = statuses.InProgress
		case state.Reason == "Restarting":
			want = statuses.Current
		}
		if got := checks[state.Object.GetAPIVersion()+" "+state.Object.GetKind()].evaluate(t, state.Object); got != want {
			t.Errorf("%s: %s, want %s", state.Name, got, want)
		}
	}
}

// evaluate returns the status that Flux computes with the expressions (RFC 0009 of Flux,
// runtime/cel of github.com/fluxcd/pkg). It waits while one of them has an error.
func (c check) evaluate(t *testing.T, obj *unstructured.Unstructured) string {
	t.Helper()
	observed, found, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration")
	if found && observed != obj.GetGeneration() {
		return statuses.InProgress
	}
	for _, expression := range []struct{ text, status string }{{c.Failed, statuses.Failed}, {c.Current, statuses.Current}} {
		holds, err := evaluate(t, expression.text, obj)
		if err != nil {
			return statuses.InProgress
		}
		if holds {
			return expression.status
		}
	}
	return statuses.InProgress
}

func evaluate(t *testing.T, expression string, obj *unstructured.Unstructured) (bool, error) {
	t.Helper()
	env, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings())
	if err != nil {
		t.Fatal(err)
	}
	parsed, issues := env.Parse(expression)
	if issues != nil {
		t.Fatalf("%q: %v", expression, issues)
	}
	program, err := env.Program(parsed)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := program.Eval(obj.Object)
	return value == types.True, err
}

// Whatever Git has is stored as it is, at its place in a list, so a tool that compares the fields
// in Git finds no difference.
func TestDefaultsAreNoDrift(t *testing.T) {
	t.Parallel()
	compared := 0
	for _, document := range samples(t) {
		manifest := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &manifest.Object); err != nil {
			t.Fatal(err)
		}
		if stored := dryCreate(t, document); stored != nil {
			compared++
			for _, path := range drift("", manifest.Object, stored.Object) {
				t.Errorf("%s %s: %s is not stored as in the manifest", manifest.GetKind(), manifest.GetName(), path)
			}
			again, err := yaml.Marshal(stored.Object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(spec(stored), spec(dryCreate(t, again))); diff != "" {
				t.Errorf("%s %s with its defaults gets others (-first +then):\n%s", manifest.GetKind(), manifest.GetName(), diff)
			}
		}
	}
	if compared < 10 {
		t.Errorf("only %d samples were compared", compared)
	}
}

// The exception that the page has: an empty value is replaced.
func TestEmptyValuesAreDrift(t *testing.T) {
	t.Parallel()
	stored := dryCreate(t, []byte(`{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: web}, spec: {image: "a:1", ports: [{port: 80}], serviceType: ""}}`))
	got := drift("", map[string]any{"spec": map[string]any{"image": "a:1", "serviceType": ""}}, stored.Object)
	if diff := cmp.Diff([]string{".spec.serviceType"}, got); diff != "" {
		t.Errorf("drift of an empty serviceType (-want +got):\n%s", diff)
	}
}

func spec(obj *unstructured.Unstructured) any { return obj.Object["spec"] }

// samples returns the documents of config/samples.
func samples(t *testing.T) [][]byte {
	t.Helper()
	var out [][]byte
	err := filepath.WalkDir("../config/samples", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		for reader := utilyaml.NewYAMLReader(bufio.NewReader(file)); ; {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			out = append(out, document)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// dryCreate returns an object as it would be stored, nil if it is not of one of our kinds.
func dryCreate(t *testing.T, document []byte) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(document, &obj.Object); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(kinds.All, func(k *kinds.Kind) bool { return k.GVK == obj.GroupVersionKind() })
	if at < 0 {
		return nil
	}
	response, err := create.Dry(t.Context(), kinds.All[at], create.Request{Body: document, YAML: true, Namespace: "default"})
	if err != nil {
		t.Fatal(err)
	}
	if response.Err != nil {
		t.Fatalf("%v:\n%s", response.Err, document)
	}
	return response.Object
}

// drift returns the paths of what a manifest has and the stored object has not, or has with
// another value. The items of lists are compared by their positions.
func drift(path string, manifest, stored any) []string {
	switch manifest := manifest.(type) {
	case map[string]any:
		of, _ := stored.(map[string]any)
		var out []string
		for _, key := range slices.Sorted(maps.Keys(manifest)) {
			out = append(out, drift(path+"."+key, manifest[key], of[key])...)
		}
		return out
	case []any:
		of, _ := stored.([]any)
		if len(of) != len(manifest) {
			return []string{path}
		}
		var out []string
		for i := range manifest {
			out = append(out, drift(fmt.Sprintf("%s[%d]", path, i), manifest[i], of[i])...)
		}
		return out
	}
	if reflect.DeepEqual(manifest, stored) || fmt.Sprint(manifest) == fmt.Sprint(stored) && manifest != "" {
		return nil
	}
	return []string{path}
}
