// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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
		"a number as name":  {"kind: A\nmetadata:\n  name: 5", []string{`3 metadata.name: must be a text, and 5 is none; write it in quotes: "5"`}},
		"n as name":         {"---\nkind: A\nmetadata: {name: n}", []string{`3 metadata.name: must be a text, and false is none; write it in quotes: "n"`}},
		"n in quotes":       {"kind: A\nmetadata: {name: 'n'}", []string{"1 A n"}},
		"values of JSON":    {"{\"kind\":\"A\"}\n\n{\n\t\"kind\":\t\"B\"}{\"kind\":\"C\"}\n---\n{\"kind\":\"D\"} null", []string{"1 A ", "3 B ", "4 C ", "6 D "}},
		"JSON, and more":    {"{\"kind\":\"A\"}\nx", []string{"1 cannot be parsed as YAML or JSON: did not find expected <document start>; a second document needs a line --- before it"}},
		"half of JSON":      {"{\"kind\":\"A\"}{\"kind\":", []string{"1 cannot be parsed as YAML or JSON: did not find expected <document start>; a second document needs a line --- before it"}},
		"an escaped emoji":  {"\n{\"kind\":\"A\",\"x\":\"\\ud83d\\ude00\"}", []string{"1 A "}},
		"two documents":     {"kind: A\n...\n{kind: B}\n", []string{"2 cannot be parsed as YAML or JSON: did not find expected <document start>; a second document needs a line --- before it"}},
		"an anchor":         {"kind: List\nitems:\n- &a {kind: A, metadata: &m {name: a}}\n- {kind: B, metadata: *m}\n- *a\n", []string{"3 A a", "4 B a", "5 A a"}},
		"a merge":           {"kind: List\nitems:\n- &a {kind: A, x: 1}\n- {<<: *a, metadata: {name: b}}\n", []string{"3 A ", "4 A b"}},
		"scalars":           {"5\n---\nx\n---\n{}\n---\n~\n", []string{"1  ", "3  ", "5  "}},
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

// Keys that are set twice are found in each item of a list, with their lines.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	docs := manifest.Parse("x.yaml", []byte("# c\n---\nkind: List\nitems:\n- kind: A\n  x: {a: 1,\n    a: 2}\n- kind: B\n  kind: C\n---\n{\"a\": 1,\n\"a\": 2}"))
	for i, want := range []string{`line 7: key "a" already set in map`, `line 9: key "kind" already set in map`, `line 12: key "a" already set in map`} {
		if got := docs[i].Duplicates; len(got) != 1 || got[0].Error() != want {
			t.Errorf("%d: %v, want %s", i, got, want)
		}
	}
}

// Eight times as many documents need about eight times the memory, and so the time, whatever
// separates them.
func TestManyDocuments(t *testing.T) {
	const one = `{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`
	for name, text := range map[string]func(n int) string{
		"documents": func(n int) string { return strings.Repeat("---\n"+one+"\n", n) },
		"values":    func(n int) string { return strings.Repeat(one+"\n", n) },
		"a List":    func(n int) string { return "kind: List\nitems:\n" + strings.Repeat("- "+one+"\n", n) },
	} {
		allocated := func(n int) (bytes uint64) {
			var before, after runtime.MemStats
			data := []byte(text(n))
			runtime.ReadMemStats(&before)
			if got := len(manifest.Parse("x", data)); got != n {
				t.Fatalf("%s: %d documents of %d", name, got, n)
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		if few, many := allocated(250), allocated(2000); many > 10*few {
			t.Errorf("%s: 8 times as many need %d times the memory", name, many/few)
		}
	}
}
