// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	architecture = "architecture.md"
	module       = "github.com/modelbox-operator/modelbox-operator/"
)

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	// placeholder is in a path that the reader completes, such as KIND.
	placeholder = regexp.MustCompile(`[A-Z]{4}|<(block|group)>`)
	inRepo      = regexp.MustCompile(`^(api|bench|certs|cli|config|controller|cron|docs|e2e|fetch|hack|test|internal|kinds|webhook)(/[\w.<>/-]*)?$`)
)

// folders returns name, or, if "<kind>" is a part of it, name for each kind.
func folders(t *testing.T, name string) []string {
	t.Helper()
	if !strings.Contains(name, "<kind>") {
		return []string{name}
	}
	controllers, err := filepath.Glob("../controller/*/controller.go")
	if err != nil || len(controllers) == 0 {
		t.Fatalf("no kind was found: %v", err)
	}
	var out []string
	for _, file := range controllers {
		out = append(out, strings.ReplaceAll(name, "<kind>", filepath.Base(filepath.Dir(file))))
	}
	return out
}

// A maintainer who follows a page finds each file.
func TestEveryPathExists(t *testing.T) {
	names := map[string]string{} // And the page.
	for _, name := range drawn(t) {
		names[name] = "architecture.svg"
	}
	theirs := regexp.MustCompile(`(?m)^\| .*? \|`) // The files of the articles, in the first column.
	for _, page := range pages() {
		text := read(t, page)
		if strings.HasSuffix(page, "from-the-articles.md") {
			text = theirs.ReplaceAllString(text, "")
		}
		for _, found := range quoted.FindAllStringSubmatch(text, -1) {
			if inRepo.MatchString(found[1]) && !placeholder.MatchString(found[1]) {
				for _, name := range folders(t, found[1]) {
					names[name] = page
				}
			}
		}
	}
	for name, page := range names {
		if _, err := os.Stat("../" + name); err != nil {
			t.Errorf("%s names %s, which does not exist", page, name)
		}
	}
}

// drawn returns the packages in the picture, such as "kinds/ports, rules".
func drawn(t *testing.T) []string {
	t.Helper()
	var out []string
	text := regexp.MustCompile(`class="code"[^>]*>([^<]+)<`)
	for _, found := range text.FindAllStringSubmatch(read(t, "architecture.svg"), -1) {
		process := ""
		for name := range strings.SplitSeq(html.UnescapeString(found[1]), ", ") {
			if dir := path.Dir(name); dir != "." {
				process = dir
			}
			out = append(out, folders(t, path.Join(process, path.Base(name)))...)
		}
	}
	return out
}

// No package imports what the table of the page does not allow it.
func TestPackagesImportWhatTheTableAllows(t *testing.T) {
	allowed := map[string]map[string]bool{}
	row := regexp.MustCompile("(?m)^\\| `([a-z/<>]+)` \\| .* \\| (.*) \\|$")
	for _, cells := range row.FindAllStringSubmatch(read(t, architecture), -1) {
		for _, name := range folders(t, cells[1]) {
			if allowed[name] == nil {
				allowed[name] = map[string]bool{} // A long list has two rows.
			}
			for _, other := range quoted.FindAllStringSubmatch(cells[2], -1) {
				for _, folder := range folders(t, other[1]) {
					// Of "<kind>" a kind's package may import its own.
					if other[1] == "kinds/<kind>" && cells[1] == "controller/<kind>" && path.Base(folder) != path.Base(name) {
						continue
					}
					allowed[name][folder] = true
				}
			}
		}
	}
	used := map[string]map[string]bool{}
	for name, imports := range importsOf(t, "api", "cli", "controller", "cron", "fetch", "internal", "kinds", "webhook") {
		if allowed[name] == nil {
			t.Errorf("%s has no row for %s, which imports %v", architecture, name, slices.Sorted(maps.Keys(imports)))
		}
		used[name] = imports
		for other := range imports {
			if !allowed[name][other] {
				t.Errorf("%s imports %s, which its row in %s does not name", name, other, architecture)
			}
		}
	}
	for name := range allowed {
		if used[name] == nil {
			t.Errorf("%s has a row for %s, which is no package", architecture, name)
		}
	}
}

// Imports go one way: api <- kinds <- webhook, controller, cli.
func TestImportsGoOneWay(t *testing.T) {
	floors := map[string]int{"api": 0, "cron": 0, "internal": 0, "config": 0, "kinds": 1, "webhook": 2, "controller": 2, "cli": 2, "fetch": 2}
	room := func(name string) string { return strings.Split(name, "/")[0] }
	for name, imports := range importsOf(t, slices.Collect(maps.Keys(floors))...) {
		for other := range imports {
			if room(name) != room(other) && floors[room(other)] >= floors[room(name)] && floors[room(other)] > 0 {
				t.Errorf("%s imports %s, which is not below it", name, other)
			}
		}
	}
}

// The domain is pure: it has no clock, no environment, and nothing happens when it is loaded.
func TestTheDomainIsPure(t *testing.T) {
	err := filepath.WalkDir("../kinds", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncDecl:
				if node.Recv == nil && node.Name.Name == "init" {
					t.Errorf("%s has a func init", file)
				}
			case *ast.SelectorExpr:
				if of, ok := node.X.(*ast.Ident); ok && slices.Contains([]string{"time.Now", "time.Since", "time.Until", "os.Getenv", "os.ReadFile"}, of.Name+"."+node.Sel.Name) {
					t.Errorf("%s uses %s.%s; its caller has to pass that", file, of.Name, node.Sel.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// importsOf returns, for each package below the folders, the packages of this repository that
// it imports. All of api is one package, and what is generated is none.
func importsOf(t *testing.T, folders ...string) map[string]map[string]bool {
	t.Helper()
	out := map[string]map[string]bool{}
	for _, folder := range folders {
		err := filepath.WalkDir("../"+folder, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "../api/client/") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			name := whole(strings.TrimPrefix(filepath.ToSlash(filepath.Dir(file)), "../"))
			if out[name] == nil {
				out[name] = map[string]bool{}
			}
			for _, spec := range parsed.Imports {
				if other, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); ours {
					out[name][whole(other)] = true
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func whole(name string) string {
	if strings.HasPrefix(name, "api/") {
		return "api"
	}
	return name
}
