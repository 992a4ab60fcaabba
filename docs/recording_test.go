// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	recording = "pictures/demo.svg"
	again     = "'make recording' writes " + recording + " again"
)

// The recording shows the demo of today: the steps in their order, and in each of them the commands,
// the refusals, the conditions that are waited for and the results, in theirs.
func TestRecordingIsOfThisDemo(t *testing.T) {
	tour, shown := tourOf(t), sections(t)
	if len(shown) != len(tour.steps)+1 {
		t.Fatalf("%s has %d steps, and the demo has %d: %s", recording, len(shown)-1, len(tour.steps), again)
	}
	for i, step := range tour.steps {
		lines, want := shown[i+1], slices.Concat([]string{fmt.Sprintf("^%d\\. %s$", i+1, regexp.QuoteMeta(step.title))}, tour.prints(step.method))
		rest := lines
		for _, pattern := range want {
			at := slices.IndexFunc(rest, regexp.MustCompile(pattern).MatchString)
			if at < 0 {
				t.Errorf("step %d of %s does not show %s at its place: %s\n%s", i+1, recording, pattern, again, strings.Join(lines, "\n"))
				break
			}
			rest = rest[at+1:]
		}
		for _, line := range lines {
			if !said.MatchString(line) || slices.ContainsFunc(want, func(p string) bool { return regexp.MustCompile(p).MatchString(line) }) {
				continue
			}
			t.Errorf("step %d of %s shows %q, which the demo does not: %s", i+1, recording, line, again)
		}
	}
}

// said are the lines that are the demo's own, besides the titles. The output of commands is
// indented more, and the command of the init container is not in the sources of the demo.
var said = regexp.MustCompile(`^   [^ $]|^   \$ kubectl`)

// The recording is of a demo that was successful, from its command to its last words.
func TestRecordingIsComplete(t *testing.T) {
	shown := sections(t)
	first, last := shown[0][0], strings.Join(shown[len(shown)-1], "\n")
	if first != "$ make demo" {
		t.Errorf("%s begins with %q", recording, first)
	}
	const words = "Everything was as expected, after "
	if !strings.Contains(read(t, "../hack/local/demo.go"), words) || !strings.Contains(last, "\n"+words) {
		t.Errorf("%s does not end with %q: %s\n%s", recording, words, again, last)
	}
}

// sections are the lines of the recording: those before the first step, and those of each step.
func sections(t *testing.T) [][]string {
	t.Helper()
	title, out := regexp.MustCompile(`^\d+\. `), [][]string{{}}
	for _, line := range svg(t, recording).find(t, "lines").texts(t) {
		if title.MatchString(line) {
			out = append(out, nil)
		}
		// A line that is too long for the terminal continues after its indentation.
		out[len(out)-1] = append(out[len(out)-1], continued.ReplaceAllString(line, "$1 "))
	}
	if len(out[0]) == 0 {
		t.Fatalf("%s is empty", recording)
	}
	return out
}

var continued = regexp.MustCompile(`(\S) {6,}`)

type step struct{ title, method string }

// tour is what the sources of the demo say that it prints.
type tour struct {
	steps   []step
	methods map[string]*ast.FuncDecl
}

func tourOf(t *testing.T) tour {
	t.Helper()
	out := tour{methods: map[string]*ast.FuncDecl{}}
	files, err := filepath.Glob("../hack/local/tour/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv != nil {
				out.methods[f.Name.Name] = f
			}
		}
	}
	ast.Inspect(out.methods["Run"], out.addStep)
	if len(out.steps) < 5 {
		t.Fatalf("only these steps were found: %v", out.steps)
	}
	return out
}

// addStep adds a step if n is one of the list of Run: a title and a method.
func (d *tour) addStep(n ast.Node) bool {
	if list, ok := n.(*ast.CompositeLit); ok && len(list.Elts) == 2 {
		method, ok := list.Elts[1].(*ast.SelectorExpr)
		if title := literal(list.Elts[0]); ok && title != "" {
			d.steps = append(d.steps, step{title, method.Sel.Name})
		}
	}
	return true
}

// prints returns patterns of the lines that a method prints, in order.
func (d *tour) prints(method string) (out []string) {
	ast.Inspect(d.methods[method].Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit: // of the table of refusals
			if len(n.Elts) == 4 && literal(n.Elts[0]) != "" && n.Type == nil {
				out = append(out, "^   "+regexp.QuoteMeta(literal(n.Elts[0]))+"$")
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && isTour(f.X) {
				out = append(out, d.printsCall(f.Sel.Name, n.Args)...)
			}
		}
		return true
	})
	return out
}

func isTour(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return ok && name.Name == "t"
}

// printsCall returns patterns of the lines that a call of a method prints.
func (d *tour) printsCall(method string, args []ast.Expr) []string {
	switch method {
	case "kubectl":
		return []string{commandLine(args[1:])}
	case "kubectlOf":
		return []string{commandLine(args[2:])}
	case "apply":
		return []string{`^   \$ kubectl apply -f config/samples/` + pattern(literal(args[1])) + `\.yaml$`}
	case "awaitReason":
		return []string{"^     " + pattern(literal(args[1])) + `: Ready=\w+ ` + pattern(literal(args[2])) + ": "}
	case "check":
		return []string{"^   ok " + pattern(literal(args[1])) + "$"}
	case "refused":
		return sentence(args[1])
	case "line":
		return sentence(args[0])
	}
	if _, ok := d.methods[method]; ok {
		return d.prints(method)
	}
	return nil
}

// sentence returns a pattern for a line of the demo's own words, and none for a format of other output.
func sentence(format ast.Expr) []string {
	text := strings.TrimSpace(literal(format))
	if !letters.MatchString(verb.ReplaceAllString(text, "")) {
		return nil
	}
	return []string{"^   " + pattern(text) + "$"}
}

var (
	verb    = regexp.MustCompile(`%[sdqvx]`)
	letters = regexp.MustCompile(`[a-z]`)
)

// pattern returns one for a format. What is not a literal is "", and has any value.
func pattern(format string) string {
	if format == "" {
		return ".+"
	}
	return verb.ReplaceAllString(regexp.QuoteMeta(format), ".+")
}

// commandLine returns a pattern for a command line with these arguments, which may be quoted.
func commandLine(args []ast.Expr) string {
	out := `^   \$ kubectl`
	for _, arg := range args {
		if text := literal(arg); text != "" {
			out += " '?" + regexp.QuoteMeta(text) + "'?"
		} else {
			out += " .+"
		}
	}
	return out + "$"
}

// literal returns the value of a string literal, and "" of anything else.
func literal(e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return ""
	}
	value, _ := strconv.Unquote(l.Value) // The compiler has read it already.
	return value
}
