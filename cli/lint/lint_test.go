// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/modelbox-operator/modelbox-operator/cli/lint"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
)

var update = flag.Bool("update", false, "write the golden files again")

func check(t *testing.T, text string) []lint.Finding {
	t.Helper()
	found, _ := lint.Check(manifest.Parse("x.yaml", []byte(text)), "default", "Strict")
	return found
}

func text(t *testing.T, format string, found []lint.Finding) string {
	t.Helper()
	var out bytes.Buffer
	if err := lint.Write(&out, format, found, "v0"); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

const box = "apiVersion: model.github.com/v1\nkind: ModelBox\nmetadata: {name: web}\nspec:\n"

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":     {box + "  image: a:1\n", ""},
		"other kinds": {"apiVersion: apps/v1\nkind: Deployment\nspec: {x: 1}\n---\na: b\n---\napiVersion: kpack.io/v1\nkind: App\n", ""},
		"errors, at their lines": {box + "  image: A b\n  ports:\n  - port: 80\n  - port: 0\n    targetPort: 1\n    name: b\n", `
x.yaml:5: error: ModelBox "web": spec.image: Invalid value: "A b": must be an image reference such as registry.example.com/team/server:1.2: invalid reference format: repository name (library/A b) must be lowercase
x.yaml:8: error: ModelBox "web": spec.ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive`},
		"a required field, at what has to have it": {box + "  replicas: 1\n", `
x.yaml:4: error: ModelBox "web": spec.image: Required value: specify an image such as registry.example.com/team/server:1.2`},
		"unknown fields": {box + "  image: a:1\n  imag: b\n  ports:\n  - prot: 1\n    port: 1\n", `
x.yaml:6: error: ModelBox "web": spec.imag: unknown field "spec.imag"
x.yaml:8: error: ModelBox "web": spec.ports[0].prot: unknown field "spec.ports[0].prot"`},
		"duplicates": {"# a\n---\n" + box + "  image: a:1\n  image: b:1\n", `
x.yaml:8: error: ModelBox "web": key "image" already set in map`},
		"duplicates in JSON": {`{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":"web"},"spec":{"image":"a:1",` + "\n" + `"image":"b:1"}}`, `
x.yaml:2: error: ModelBox "web": spec.image: duplicate field "spec.image"`},
		"a warning": {box + "  image: a\n", `
x.yaml:5: warning: ModelBox "web": spec.image: has no tag; use a version tag or spec.imagePullPolicy: IfNotPresent`},
		"errors of a model": {box + "  image: a:1\n  model:\n    uri: s3://bucket/a\n    sizeLimit: 0\n    claim: models\n", `
x.yaml:6: error: ModelBox "web": spec.model.sha256: Required value: pods find the model in spec.model.claim by its hash; set it, or remove the claim
x.yaml:8: error: ModelBox "web": spec.model.sizeLimit: Invalid value: "0": must be greater than 0`},
		"a URI that names no file": {box + "  image: a:1\n  model:\n    uri: s3://bucket/\n", `
x.yaml:7: error: ModelBox "web": spec.model.uri: Invalid value: "s3://bucket/": must end with the name of a file of at most 255 bytes, such as bert.tar.zst`},
		"an alias of another URI": {box + "  image: a:1\n  modelFileURL: https://a/b\n  model:\n    uri: https://a/c\n    sha256: abc\n", `
x.yaml:6: error: ModelBox "web": spec.modelFileURL: Forbidden: is an alias of spec.model.uri, which has another value; remove one of them
x.yaml:9: error: ModelBox "web": spec.model.sha256: Invalid value: "abc": must be a SHA-256 of 64 hexadecimal digits, as sha256sum prints it`},
		"a model that can change": {box + "  image: a:1\n  model: {}\n  modelFileURL: https://models.example.com/a\n", `
x.yaml:7: warning: ModelBox "web": spec.modelFileURL: what it refers to can change; set spec.model.sha256`},
		"the volume of a model": {box + "  image: a:1\n  model:\n    uri: pvc://models\n  podTemplate:\n    spec:\n      volumes:\n      - name: model\n", `
x.yaml:11: error: ModelBox "web": spec.podTemplate.spec.volumes[0].name: Forbidden: model is the volume of spec.model; use another name, or remove spec.model`},
		"syntax": {box + "  image: [\n---\n" + box + "  image: a:1\n", `
x.yaml:5: error: cannot be parsed as YAML or JSON: did not find expected node content`},
		"another version": {"kind: ModelBox\napiVersion: model.github.com/v2\nmetadata: {name: web}\n", `
x.yaml:2: error: ModelBox "web": no matches for kind "ModelBox" in version "model.github.com/v2"; set apiVersion: model.github.com/v1`},
		"no version": {"kind: Eru\nmetadata: {name: a}\n", `
x.yaml:1: error: Eru "a": no matches for kind "Eru" in version ""; set apiVersion: mtsre.meitu.com/v1`},
		"another kind": {"apiVersion: model.github.com/v1\nkind: Modelbox\n", `
x.yaml:1: error: no matches for kind "Modelbox" in version "model.github.com/v1"; set kind: ModelBox`},
		"a name": {"apiVersion: model.github.com/v1\nkind: ModelBox\nmetadata:\n  name: a_b\nspec: {image: a:1}\n", `
x.yaml:4: error: ModelBox "a_b": metadata.name: Invalid value: "a_b": ` + nameRule},
		"in a List": {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: model.github.com/v1\n  kind: ModelBox\n  metadata: {name: web}\n  spec:\n    image: A\n", `
x.yaml:8: error: ModelBox "web": spec.image: Invalid value: "A": must be an image reference such as registry.example.com/team/server:1.2: invalid reference format: repository name (library/A) must be lowercase`},
		"the next runs of an Eru": {"apiVersion: mtsre.meitu.com/v1\nkind: Eru\nmetadata: {name: a}\nspec:\n  enabled: true\n", `
x.yaml:4: note: Eru "a": spec.schedule: the next restarts are at T, T, T`},
		"the next runs of a disabled Eru": {"apiVersion: mtsre.meitu.com/v1\nkind: Eru\nmetadata: {name: a}\nspec: {}\n", `
x.yaml:1: note: Eru "a": spec.enabled is false: it would run at T, T, T`},
		"the schema's own rules": {"apiVersion: model.github.com/v1\nkind: ModelBox\nmetadata: {name: web}\nspec: []\n", `
x.yaml:4: error: ModelBox "web": spec: Invalid value: must be of type object: "array"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := regexp.MustCompile(`20\d\d-\S+Z`).ReplaceAllString(text(t, "text", check(t, tc.text)), "T")
			if diff := cmp.Diff(strings.TrimSpace(tc.want), strings.TrimSpace(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const nameRule = `must be a valid Service name: at most 63 characters, lower-case letters, digits and dashes, starting with a letter and ending with a letter or digit`

// Each format is a file in testdata.
func TestFormats(t *testing.T) {
	t.Parallel()
	found := check(t, box+"  image: a\n---\n"+box+"  image: A,%:b\n  replicas: -1\n---\nx: [\n")
	found = append(found, lint.Finding{File: "a b,c:d.yaml", Line: 1, Severity: lint.Note, Rule: lint.RuleWarning, Message: "two\nlines"})
	for _, format := range lint.Formats {
		got, file := text(t, format, found), filepath.Join("testdata", "findings."+format)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}

// A format of data is data without findings as well.
func TestNoFindings(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"json", "sarif"} {
		var data any
		if err := json.Unmarshal([]byte(text(t, format, nil)), &data); err != nil || data == nil {
			t.Errorf("%s: %v %v", format, data, err)
		}
	}
	if err := lint.Write(&bytes.Buffer{}, "xml", nil, ""); err == nil || !strings.Contains(err.Error(), "use one of text, json, sarif, github") {
		t.Errorf("got %v", err)
	}
}
