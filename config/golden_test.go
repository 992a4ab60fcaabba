// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/internal/version"
	"github.com/modelbox-operator/modelbox-operator/test/golden"
)

// overlays are kustomizations of the install, in which CONFIG is this folder. Those of the pages of
// documentation are added.
var overlays = map[string]string{
	"config/operator":           "resources: [CONFIG/operator]",
	"config/monitoring":         "resources: [CONFIG, CONFIG/monitoring]",
	"monitoring/controller-tls": "resources: [CONFIG, CONFIG/monitoring]\ncomponents: [CONFIG/monitoring/controller-tls]",
	"gateway-api":               "resources: [CONFIG]\ncomponents: [CONFIG/gateway-api]",
	"keda":                      "resources: [CONFIG]\ncomponents: [CONFIG/keda]",
	"prometheus-operator":       "resources: [CONFIG]\ncomponents: [CONFIG/prometheus-operator]",
	"restart-on-secrets":        "resources: [CONFIG]\ncomponents: [CONFIG/restart-on-secrets]",
}

// pages have kustomizations, so many each.
var pages = map[string]int{"install.md": 4, "model-platform.md": 1, "monitoring.md": 1, "clouds.md": 1, "kinds-of-an-install.md": 1}

// TestInstalls compares what is installed with testdata/install.golden.yaml, and, of each overlay, the
// differences from that with testdata/overlays.golden.yaml. The schemas of the CRDs and the expressions of the policies are
// left out: they are files of their own. Read a difference as one that each user gets with the next apply.
func TestInstalls(t *testing.T) {
	base := contents(t, install(t))
	var whole strings.Builder
	for _, key := range slices.Sorted(maps.Keys(base)) {
		fmt.Fprintf(&whole, "---\n%s", encoded(t, base[key]))
	}
	golden.Equal(t, "testdata/install.golden.yaml", ofAnyVersion([]byte(whole.String())))

	all := maps.Clone(overlays)
	for page, want := range pages {
		texts := documented(t, page, "//config?ref=")
		if len(texts) != want {
			t.Errorf("docs/%s has %d kustomizations, want %d", page, len(texts), want)
		}
		for i, text := range texts {
			all[fmt.Sprintf("docs/%s %d", page, i+1)] = text
		}
	}
	differences := map[string]any{}
	for name, text := range all {
		objects := kustomization(t, text+"\n")
		checkObjects(t, objects)
		differences[name] = differencesOf(t, base, contents(t, objects))
	}
	for limited, objects := range limitedInstalls(t) {
		checkObjects(t, objects)
		differences[limited] = differencesOf(t, base, contents(t, objects))
	}
	golden.Equal(t, "testdata/overlays.golden.yaml", ofAnyVersion(encoded(t, differences)))
}

// ofAnyVersion returns manifests without the version of the operator, so that another one changes no golden file.
func ofAnyVersion(manifests []byte) []byte {
	return bytes.ReplaceAll(manifests, []byte(version.Version), []byte("VERSION"))
}

// checkObjects checks what holds for all installs: each object is there once and small enough to be applied, and the
// processes know their flags.
func checkObjects(t *testing.T, objects []object) {
	t.Helper()
	seen := map[string]bool{}
	for _, o := range objects {
		if seen[o.String()] {
			t.Errorf("%s is duplicate", o)
		}
		seen[o.String()] = true
		if len(o.json) >= largest {
			t.Errorf("%s has %d bytes, and kubectl apply accepts less than %d", o, len(o.json), largest)
		}
	}
	for _, d := range each[*appsv1.Deployment](objects) {
		setFlags(t, d)
	}
	checkFetchImage(t, objects)
}

// contents returns objects by their kind, namespace and name, without schemas and expressions, as if the operator
// were in its default namespace. The names of what is in no namespace end in that of a limited install.
func contents(t *testing.T, objects []object) map[string]map[string]any {
	t.Helper()
	own := find[*appsv1.Deployment](t, objects, controllerName).Namespace
	renamed := strings.NewReplacer("-"+own, "", own, system)
	if own == system {
		renamed = strings.NewReplacer()
	}
	out := map[string]map[string]any{}
	for _, o := range objects {
		var content map[string]any
		if err := json.Unmarshal([]byte(renamed.Replace(string(o.json))), &content); err != nil {
			t.Fatal(err)
		}
		spec, _ := content["spec"].(map[string]any)
		switch o.gvk.Kind {
		case "CustomResourceDefinition":
			delete(spec, "versions")
		case "ValidatingAdmissionPolicy":
			delete(spec, "variables")
			delete(spec, "validations")
		}
		out[renamed.Replace(o.String())] = content
	}
	return out
}

// difference is what an overlay changes: objects that the install has not, merge patches of those that it has, and
// the names of those that are gone.
type difference struct {
	Added   []any          `json:"added,omitempty"`
	Changed map[string]any `json:"changed,omitempty"`
	Gone    []string       `json:"gone,omitempty"`
}

func differencesOf(t *testing.T, base, with map[string]map[string]any) (out difference) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(with)) {
		if base[key] == nil {
			out.Added = append(out.Added, with[key])
			continue
		}
		patch, err := jsonpatch.CreateMergePatch(asJSON(t, base[key]), asJSON(t, with[key]))
		if err != nil {
			t.Fatal(err)
		}
		if string(patch) != "{}" {
			if out.Changed == nil {
				out.Changed = map[string]any{}
			}
			out.Changed[key] = json.RawMessage(patch)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(base)) {
		if with[key] == nil {
			out.Gone = append(out.Gone, key)
		}
	}
	return out
}

func asJSON(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func encoded(t *testing.T, value any) []byte {
	t.Helper()
	data, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var code, remote = regexp.MustCompile(`(?m)^(    .*\n)+`), regexp.MustCompile(`https://\S+//config(\S*)\?ref=\S+`)

// documented returns the kustomizations of a page, with CONFIG in place of the repository, that
// have a part.
func documented(t *testing.T, page, part string) (texts []string) {
	t.Helper()
	for _, block := range code.FindAllString(readFile(t, "../docs/"+page), -1) {
		if strings.Contains(block, part) {
			text := strings.ReplaceAll(block, "\n    ", "\n")[len("    "):]
			texts = append(texts, remote.ReplaceAllString(text, "CONFIG$1"))
		}
	}
	return texts
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
