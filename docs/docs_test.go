// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

const troubleshooting = "troubleshooting.md"

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// pages returns every page for readers, in English and in Chinese.
func pages() (out []string) {
	for _, pattern := range []string{"*.md", "zh-CN/*.md", "../*.md"} {
		files, _ := filepath.Glob(pattern) // The patterns are well-formed.
		out = append(out, files...)
	}
	return out
}

// The page explains every reason of a condition, of an event or of an Eru's history.
func TestEveryReasonIsExplained(t *testing.T) {
	page := read(t, troubleshooting)
	for reason, from := range reasons(t) {
		if !strings.Contains(page, "`"+reason+"`") {
			t.Errorf("%s does not explain `%s`, of %s", troubleshooting, reason, from)
		}
	}
}

// reasons returns the conditions, the results of an Eru, and the reasons in the controller's sources, with the file of
// each: the constants whose name begins with "reason", and the literals in calls of Eventf.
func reasons(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	add := func(e ast.Expr, from string) {
		if literal, ok := e.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			value, _ := strconv.Unquote(literal.Value) // The compiler has read it already.
			out[value] = from
		}
	}
	err := filepath.WalkDir("../controller", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if strings.HasPrefix(strings.ToLower(name.Name), "reason") && i < len(n.Values) {
						add(n.Values[i], path)
					}
				}
			case *ast.CallExpr:
				// Eventf(regarding, related, type, reason, action, note, ...)
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Eventf" && len(n.Args) > 3 {
					add(n.Args[3], path)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 20 {
		t.Fatalf("only %d reasons were found: %v", len(out), out)
	}
	for _, result := range []mtsrev1.EruResult{mtsrev1.EruRestarted, mtsrev1.EruSkipped, mtsrev1.EruResultFailed} {
		out[string(result)] = "an event of an Eru"
	}
	for _, condition := range []string{status.ConditionReady, status.ConditionAvailable, status.ConditionReconciling, status.ConditionStalled, status.ConditionPaused, status.ConditionModelDiffers} {
		out[condition] = "a condition"
	}
	return out
}

var (
	link = regexp.MustCompile(`\[[^]]*\]\(([^)\s]+)\)`)
	code = regexp.MustCompile("`[^`\n]*`")
)

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	for _, file := range pages() {
		for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(read(t, file), ""), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := file
			if target != "" {
				to = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s has the link %s, and there is no %s", file, found[0], to)
				continue
			}
			if anchor != "" && !anchors(read(t, to))[anchor] {
				t.Errorf("%s has the link %s, and no heading of %s is called so", file, found[0], to)
			}
		}
	}
}

var (
	heading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors are the anchors of a page's headings, as GitHub makes them.
func anchors(page string) map[string]bool {
	out := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(page, -1) {
		text := dropped.ReplaceAllString(strings.ToLower(h[1]), "")
		out[strings.ReplaceAll(text, " ", "-")] = true
	}
	return out
}

// The threat model and the table of promises name tests; each of them exists.
func TestTheThreatModelNamesTests(t *testing.T) {
	tests := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && slices.Contains([]string{".git", "bin", "dist"}, entry.Name()) {
			return filepath.SkipDir // Other tests make and remove files there.
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		data, err := os.ReadFile(file)
		for _, found := range declared.FindAllStringSubmatch(string(data), -1) {
			tests[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"threat-model.md", "controller-token.md", "../CONTRIBUTING.md"} {
		for _, found := range regexp.MustCompile("`((Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(read(t, page), -1) {
			if !tests[found[1]] {
				t.Errorf("%s names %s, which does not exist", page, found[1])
			}
		}
	}
}
