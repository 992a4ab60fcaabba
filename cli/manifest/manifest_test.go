// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
)

// described returns each document as "line kind name", or "line error".
func described(docs []manifest.Document) []string {
	var out []string
	for _, doc := range docs {
		text := fmt.Sprintf("%d %s %s", doc.Line, doc.Object.GetKind(), doc.Object.GetName())
		if doc.Err != nil {
			text = fmt.Sprintf("%d %v", doc.Line, doc.Err)
		}
		out = append(out, text)
	}
	return out
}

func TestParse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"nothing":           {"", nil},
		"comments":          {"# a\n---\n# b\n---\n", nil},
		"one":               {"kind: A\nmetadata: {name: a}\n", []string{"1 A a"}},
		"several":           {"kind: A\n---\n# c\nkind: B\n--- # x\nkind: C\n---  {kind: D}\n", []string{"1 A ", "4 B ", "6 C ", "7 D "}},
		"windows":           {"kind: A\r\n---\r\nkind: B\r\n", []string{"1 A ", "3 B "}},
		"a text with ---":   {"kind: A\nx: |\n  ---\n  ---x\n---y: 1\n", []string{"1 A "}},
		"JSON":              {`{"kind":"A"}`, []string{"1 A "}},
		"flow style":        {"{kind: A}\n---\n{kind: B}", []string{"1 A ", "3 B "}},
		"a List":            {"apiVersion: v1\nkind: List\nitems:\n- kind: A\n  metadata: {name: a}\n- kind: B\n", []string{"4 A a", "6 B "}},
		"a List in a List":  {"kind: List\nitems:\n- kind: List\n  items:\n  - kind: A\n", []string{"5 A "}},
		"a list of a kind":  {`{"kind":"AList","items":[{"kind":"A"}]}`, []string{"1 A "}},
		"broken":            {"kind: A\n---\nkind: B\nx: [\n", []string{"1 A ", "4 cannot be parsed as YAML or JSON: did not find expected node content"}},
		"a tab":             {"kind: A\nspec:\n\tx: 1\n", []string{"3 cannot be parsed as YAML or JSON: found character that cannot start any token"}},
		"broken JSON":       {"{\"kind\": \"A\",\n\"x\": [}", []string{"1 cannot be parsed as YAML or JSON: did not find expected node content"}},
		"a byte order mark": {"\ufeffkind: A", []string{"1 A "}},
		"no object":         {"- a\n- b\n", []string{"1  "}},
		"a number as name":  {"kind: A\nmetadata: {name: 5}", []string{"1 A "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, described(manifest.Parse("x.yaml", []byte(tc.text)))); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tc.text, diff)
			}
		})
	}
}

func TestLineOf(t *testing.T) {
	t.Parallel()
	docs := manifest.Parse("x.yaml", []byte(`kind: X
---
kind: A
metadata:
  labels:
    a.b/c: d
spec:
  ports:
  - port: 1
    name: a
  -
    port: 2
  image: a
  image: b
  base: &base
    x: 1
  other: *base
`))
	for path, want := range map[string]int{
		"":                       3,
		"kind":                   3,
		"spec":                   7,
		"spec.ports[0].name":     10,
		"spec.ports[0].nodePort": 9,
		"spec.ports[1]":          12,
		"spec.ports[1].port":     12,
		"spec.ports[7].port":     8,
		"spec.image":             14,
		"spec.missing.x":         7,
		"metadata.labels[a.b/c]": 6,
		"metadata.name":          4,
		"status":                 3,
		"spec.other.x":           16,
	} {
		if got := docs[1].LineOf(path); got != want {
			t.Errorf("%s is in line %d, want %d", path, got, want)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for file, text := range map[string]string{"b.yml": "kind: B", "a.yaml": "kind: A", "c.json": `{"kind":"C"}`, "d.txt": "kind: D", "e/f.yaml": "kind: F"} {
		path := filepath.Join(folder, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		paths     []string
		recursive bool
		want      string
	}{
		"a folder":       {[]string{folder}, false, "A B C"},
		"recursive":      {[]string{folder}, true, "A B C F"},
		"a file":         {[]string{filepath.Join(folder, "d.txt")}, false, "D"},
		"standard input": {[]string{"-", filepath.Join(folder, "a.yaml")}, false, "S A"},
		"none":           {[]string{filepath.Join(folder, "x")}, false, "no such file or directory"},
		"a URL":          {[]string{"https://example.com/a.yaml"}, false, "download the file, or pipe it to -f -"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			docs, err := manifest.Read(tc.paths, tc.recursive, strings.NewReader("kind: S"))
			if err != nil {
				if !strings.HasSuffix(err.Error(), tc.want) {
					t.Errorf("got %v, want %s", err, tc.want)
				}
				return
			}
			var kinds []string
			for _, doc := range docs {
				kinds = append(kinds, doc.Object.GetKind())
			}
			if got := strings.Join(kinds, " "); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
