// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// found is a spec in the source of a test.
type found struct {
	kind string
	spec map[string]any
}

// specsInTests returns the specs that the tests of the rules have as text, and those of the
// corpus of admission. A table that is added there is tried here without further ado.
func specsInTests(t *testing.T) []found {
	t.Helper()
	var out []found
	seen := map[string]bool{}
	add := func(kind, text string) {
		if first, rest, ok := strings.Cut(text, " "); ok && kindNamed(first) {
			kind, text = first, rest
		}
		if !kindNamed(kind) || seen[kind+text] || !strings.Contains(text, ":") {
			return
		}
		seen[kind+text] = true
		var spec map[string]any
		if yaml.Unmarshal([]byte(text), &spec) == nil && isSpec(kind, spec) {
			out = append(out, found{kind, spec})
		}
	}
	for file, kind := range testFiles(t) {
		for _, text := range textsIn(t, file) {
			add(kind, text)
		}
	}
	corpus, err := os.ReadFile(filepath.Join(testenv.Root(), "controller", "testdata", "agreement-corpus.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(corpus)) {
		add("", strings.TrimSpace(line))
	}
	return out
}

// testFiles returns the tests of the rules, and the kind that each is about.
func testFiles(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	add := func(kind string, pattern ...string) {
		files, err := filepath.Glob(filepath.Join(append([]string{testenv.Root()}, pattern...)...))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			out[file] = kind
		}
	}
	add("ModelBox", "webhook", "*_test.go")
	add("ModelBox", "controller", "agreement_*_test.go")
	for _, kind := range kinds.All {
		add(kind.GVK.Kind, "webhook", kind.Singular(), "*_test.go")
	}
	return out
}

func kindNamed(name string) bool {
	for _, kind := range kinds.All {
		if kind.GVK.Kind == name {
			return true
		}
	}
	return false
}

// isSpec reports whether an object has a field of a kind's spec.
func isSpec(name string, spec map[string]any) bool {
	for _, kind := range kinds.All {
		if kind.GVK.Kind != name {
			continue
		}
		properties := kind.CRD().Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
		for field := range spec {
			if _, ok := properties[field]; ok {
				return true
			}
		}
	}
	return false
}

// textsIn returns the strings in a source, with those that are added up of several.
func textsIn(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		expr, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text, ok := textOf(expr)
		if ok {
			out = append(out, text)
		}
		return !ok
	})
	return out
}

func textOf(expr ast.Expr) (string, bool) {
	switch e := expr.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return constant.StringVal(constant.MakeFromLiteral(e.Value, e.Kind, 0)), true
		}
	case *ast.BinaryExpr:
		left, ok := textOf(e.X)
		right, also := textOf(e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}
