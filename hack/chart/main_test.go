// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/modelbox-operator/modelbox-operator/internal/version"
)

var noImages = map[string]image{"webhook": {}, "controller": {}}

func generate(t *testing.T) (source, map[string]string) {
	t.Helper()
	from, err := read("../../config")
	if err != nil {
		t.Fatal(err)
	}
	files, err := chart(from, release{version: version.Version, images: noImages})
	if err != nil {
		t.Fatal(err)
	}
	return from, files
}

func TestTheChartIsUpToDate(t *testing.T) {
	const folder = "../../charts/modelbox-operator"
	_, files := generate(t)
	for name, text := range files {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || string(got) != text {
			t.Errorf("%s is not what config/ makes it: run 'make generate' (%v)", name, err)
		}
	}
	names, err := filepath.Glob(folder + "/*/*")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	for _, name := range names {
		if relative, err := filepath.Rel(folder, name); err != nil || files[filepath.ToSlash(relative)] == "" {
			t.Errorf("%s is not generated", name)
		}
	}
}

func TestWriteReplacesTheFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "chart")
	for _, files := range []map[string]string{{"old": "1", "templates/a.yaml": "2"}, {"templates/b.yaml": "3"}} {
		if err := write(folder, files); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, pattern := range []string{"*", "templates/*"} {
			names, _ := filepath.Glob(filepath.Join(folder, pattern))
			for _, name := range names {
				if text, err := os.ReadFile(name); err == nil {
					relative, _ := filepath.Rel(folder, name)
					got[filepath.ToSlash(relative)] = string(text)
				}
			}
		}
		if diff := cmp.Diff(files, got); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
}

// A field that moves in config/, or an object of a new kind, must not become a chart that has no
// such value, or not the object.
func TestWhatTheChartHasNoPlaceFor(t *testing.T) {
	for want, edit := range map[string]func(*source){
		"no template is for ConfigMap new": func(s *source) {
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
			object.SetName("new")
			s.install = append(s.install, object)
		},
		"there is no field replicas": func(s *source) { unstructured.RemoveNestedField(named(s, deployment).Object, "spec", "replicas") },
		"no object has the field": func(s *source) {
			s.install = slices.DeleteFunc(s.install, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ResourceQuota" })
		},
		"the value priorityClassName would have the defaults": func(s *source) {
			pod, _, _ := unstructured.NestedMap(named(s, deployment).Object, "spec", "template", "spec")
			pod["priorityClassName"] = "other"
			_ = unstructured.SetNestedMap(named(s, deployment).Object, pod, "spec", "template", "spec")
		},
	} {
		from, _ := generate(t)
		edit(&from)
		if _, err := chart(from, release{version: version.Version, images: noImages}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that contains %q", err, want)
		}
	}
}

// named returns the first object of a kind.
func named(s *source, kind string) *unstructured.Unstructured {
	return s.install[slices.IndexFunc(s.install, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind })]
}

func TestPages(t *testing.T) {
	p := &page{object: map[string]any{
		"name":  system,
		"text":  "in " + system + " {{ $labels.pod }}",
		"count": 2,
		"list":  []any{map[string]any{"a": 1, "b": map[string]any{"c": "d"}}},
		"gone":  map[string]any{"here": "yes"},
	}}
	had, err := p.set("count", "{{ .count }}")
	if err != nil || had != 2 {
		t.Fatalf("%v, %v", had, err)
	}
	for _, err := range []error{
		p.add("list.0.b", "{{- with .x }}\nx: {{ toYaml . | nindent INDENT }}\n{{- end }}"),
		p.add("made", "y: 1"),
		p.when("gone", ".here"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.set("list.*.b", "{{- toYaml .b | nindent INDENT }}"); err != nil {
		t.Fatal(err)
	}
	got, err := p.render()
	if err != nil {
		t.Fatal(err)
	}
	const want = `count: {{ .count }}
list:
- a: 1
  b: {{- toYaml .b | nindent 4 }}
made:
  y: 1
name: {{ $.Release.Namespace | quote }}
text: in {{ $.Release.Namespace }} {{ "{{" }} $labels.pod }}
{{- if .here }}
gone:
  here: "yes"
{{- end }}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	for _, path := range []string{"none", "list.1.a", "list.x", "none.a"} {
		if _, err := p.set(path, ""); err == nil {
			t.Errorf("the path %s was found", path)
		}
	}
}

// An object that differs in another way from the one of a limited install needs a document of its own.
func TestObjectsThatAreOnePage(t *testing.T) {
	for name, test := range map[string]struct {
		whole, limited string
		want           bool
	}{
		"the same":                {`{a: 1}`, `{a: 1}`, true},
		"a name":                  {`{a: [{b: x}]}`, `{a: [{b: x-modelbox-system}]}`, true},
		"one more field":          {`{a: {b: x}}`, `{a: {b: x, c: [each-namespace]}}`, true},
		"one field less":          {`{a: {b: x, c: y}}`, `{a: {b: x}}`, false},
		"another value":           {`{a: x}`, `{a: y}`, false},
		"another number":          {`{a: 1}`, `{a: 2}`, false},
		"another type":            {`{a: x}`, `{a: {b: x}}`, false},
		"one more item of a list": {`{a: [1]}`, `{a: [1, 2]}`, false},
	} {
		whole, err := decode([]byte(test.whole))
		if err != nil {
			t.Fatal(err)
		}
		limited, err := decode([]byte(test.limited))
		if err != nil {
			t.Fatal(err)
		}
		if got := (&page{}).merge(whole[0], limited[0]); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func TestFilesOfTheChart(t *testing.T) {
	_, files := generate(t)
	for _, name := range []string{"Chart.yaml", "values.yaml", "values.schema.json", "templates/_helpers.tpl", "templates/NOTES.txt", "templates/crds.yaml"} {
		if files[name] == "" {
			t.Errorf("the chart has no %s, only %v", name, slices.Sorted(maps.Keys(files)))
		}
	}
	for name, text := range files {
		if strings.Contains(text, "chart-mark") || strings.Contains(text, indent) || strings.Contains(text, system) || strings.Contains(text, anyNamespace) {
			t.Errorf("%s has a mark, or names the namespace of config/", name)
		}
	}
	if want := "appVersion: " + version.Version + "\n"; !strings.Contains(files["Chart.yaml"], want) {
		t.Errorf("Chart.yaml lacks %q", want)
	}
}

func TestTheChartOfARelease(t *testing.T) {
	from, without := generate(t)
	images := map[string]image{}
	for _, process := range processes {
		var err error
		if images[process], err = parseImage("localhost:5000/team/modelbox-" + process + "@sha256:1234"); err != nil {
			t.Fatal(err)
		}
	}
	files, err := chart(from, release{version: version.Version, images: images})
	if err != nil {
		t.Fatal(err)
	}
	for name := range without {
		if (files[name] == without[name]) != (name != "values.yaml") {
			t.Errorf("%s: only the values have the images", name)
		}
	}
	for _, process := range processes {
		if want := "repository: localhost:5000/team/modelbox-" + process + "\n"; !strings.Contains(files["values.yaml"], want) {
			t.Errorf("values.yaml lacks %q", want)
		}
	}
	if count := strings.Count(files["values.yaml"], "    digest: sha256:1234\n"); count != len(processes) {
		t.Errorf("the digest is there %d times", count)
	}
	for _, reference := range []string{"modelbox:v1", "@sha256:1234"} {
		if _, err := parseImage(reference); err == nil {
			t.Errorf("%s is accepted", reference)
		}
	}
}
