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

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	// What the two processes register.
	_ "github.com/modelbox-operator/modelbox-operator/controller/eru"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
	_ "github.com/modelbox-operator/modelbox-operator/webhook/admission"
	_ "github.com/modelbox-operator/modelbox-operator/webhook/server"
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

// The page explains every reason of a condition, of an event or of an Eru's history.
func TestEveryReasonIsExplained(t *testing.T) {
	page := read(t, troubleshooting)
	found := reasons(t)
	for _, result := range []mtsrev1.EruResult{mtsrev1.EruRestarted, mtsrev1.EruSkipped, mtsrev1.EruResultFailed} {
		found[string(result)] = "an event of an Eru"
	}
	for _, condition := range []string{status.ConditionReady, status.ConditionReconciling, status.ConditionStalled, status.ConditionPaused} {
		found[condition] = "a condition"
	}
	for reason, from := range found {
		if !strings.Contains(page, "`"+reason+"`") {
			t.Errorf("%s does not explain `%s`, of %s", troubleshooting, reason, from)
		}
	}
}

// reasons returns the reasons in the controller's sources, and the file of each: the
// constants whose name begins with "reason", and the literals in calls of Eventf.
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
	return out
}

// The tables of reasons on a kind's page are the rows of troubleshooting.md for that kind,
// word for word, so that each reason has one explanation. A page without them refers to
// another kind's, which has all of its own rows.
func TestKindsExplainReasonsAsTroubleshootingDoes(t *testing.T) {
	sources, all := reasons(t), reasonRows(t, troubleshooting)
	pages, err := filepath.Glob("../controller/*/controller.go")
	if err != nil || len(pages) < 5 {
		t.Fatalf("only these kinds were found: %v, %v", pages, err)
	}
	for _, controller := range pages {
		kind := filepath.Base(filepath.Dir(controller))
		text, want, got := read(t, kind+".md"), rowsOf(kind, all), reasonRows(t, kind+".md")
		if other := referral.FindStringSubmatch(text); len(got) == 0 && other != nil {
			got = slices.DeleteFunc(rowsOf(other[1], all), func(row string) bool { return !slices.Contains(want, row) })
		}
		if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
			t.Errorf("%s.md does not have the rows of %s (-want +got):\n%s", kind, troubleshooting, diff)
		}
		for reason, file := range sources {
			if filepath.Base(filepath.Dir(file)) == kind && !strings.Contains(text, "`"+reason+"`") {
				t.Errorf("%s.md does not explain `%s`, of %s", kind, reason, file)
			}
		}
	}
	for _, row := range all {
		if cell := strings.Split(row, " | ")[2]; oneWord.MatchString(cell) && sources[strings.Trim(cell, "`")] == "" {
			t.Errorf("%s explains %s, which is no reason in the sources", troubleshooting, cell)
		}
	}
}

var (
	oneWord  = regexp.MustCompile("^`[A-Za-z]+`$")
	referral = regexp.MustCompile(`\(([a-z]+)\.md#status\)`)
)

// rowsOf returns the rows for a kind, sorted, without their first column, which names the
// kinds.
func rowsOf(kind string, all []string) []string {
	var out []string
	for _, row := range all {
		kinds, rest, _ := strings.Cut(row, " | ")
		if slices.Contains(strings.Split(strings.ToLower(kinds), ", "), kind) {
			out = append(out, rest)
		}
	}
	return slices.Sorted(slices.Values(out))
}

// reasonRows returns the rows, sorted and without the outer bars, of a page's tables of
// reasons: those whose head ends in these columns.
func reasonRows(t *testing.T, page string) []string {
	t.Helper()
	var out []string
	within := false
	for line := range strings.Lines(read(t, page)) {
		switch {
		case strings.HasSuffix(line, " | Reason | Meaning | What to do |\n"):
			within = true
		case !strings.HasPrefix(line, "|"):
			within = false
		case within && !strings.HasPrefix(line, "|---"):
			out = append(out, strings.Trim(line, "| \n"))
		}
	}
	return slices.Sorted(slices.Values(out))
}

func TestEveryMetricIsExplained(t *testing.T) {
	page := read(t, troubleshooting)
	all := prometheus.NewRegistry()
	all.MustRegister(metrics.Registry.(prometheus.Collector), version.Collector("test"))
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		all.Describe(descriptions)
	}()
	ours := regexp.MustCompile(`fqName: "(modelbox_[^"]*)"`)
	n := 0
	for d := range descriptions {
		if name := ours.FindStringSubmatch(d.String()); name != nil {
			n++
			if !strings.Contains(page, "\n| `"+name[1]+"` |") {
				t.Errorf("%s has no row for %s", troubleshooting, name[1])
			}
		}
	}
	if n == 0 {
		t.Error("no metric was found")
	}
}

var (
	link = regexp.MustCompile(`\[[^]]*\]\(([^)\s]+)\)`)
	code = regexp.MustCompile("`[^`\n]*`")
)

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md", "zh-CN/glossary.md") {
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

// The threat model names tests; each of them exists.
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
	for _, found := range regexp.MustCompile("`((Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(read(t, "security.md"), -1) {
		if !tests[found[1]] {
			t.Errorf("security.md names %s, which does not exist", found[1])
		}
	}
}

// The examples of the page of ModelBoxes are the files of config/samples/more, which the tests
// of the webhooks create.
func TestExamplesAreSamples(t *testing.T) {
	page, err := os.ReadFile("modelbox.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../config/samples/more/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d samples (%v)", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "    "+strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", "\n    ")+"\n") {
			t.Errorf("%s is not in modelbox.md, word for word and indented by four spaces", file)
		}
	}
}

// Each question has a short answer that links to the page which explains it.
func TestAnswersAreShortAndLink(t *testing.T) {
	const longest = 600 // In bytes.
	_, page, _ := strings.Cut(read(t, "faq.md"), "\n### ")
	questions := strings.Split(page, "\n### ")
	if len(questions) < 15 || len(questions) > 25 {
		t.Errorf("faq.md has %d questions, not 15 to 25", len(questions))
	}
	for _, text := range questions {
		question, answer, _ := strings.Cut(text, "\n")
		answer, _, _ = strings.Cut(answer, "\n## ")
		if !strings.HasSuffix(question, "?") || len(answer) > longest || !link.MatchString(answer) {
			t.Errorf("faq.md: %q has no question mark, or an answer of %d bytes or without a link", question, len(answer))
		}
	}
}

// The changelog has a section for the version that is built, and only the headings of Keep a
// Changelog, each with entries of one sentence.
func TestChangelog(t *testing.T) {
	page := read(t, "../CHANGELOG.md")
	released := strings.TrimPrefix(strings.TrimSpace(read(t, "../internal/version/VERSION")), "v")
	for _, want := range []string{"\n## [Unreleased]\n", "\n## [" + released + "] - ", "\n[Unreleased]: ", "\n[" + released + "]: "} {
		if !strings.Contains(page, want) {
			t.Errorf("CHANGELOG.md does not have %q", want)
		}
	}
	sections := strings.Split(page, "\n### ")[1:]
	for _, section := range sections {
		title, entries, _ := strings.Cut(section, "\n")
		if !slices.Contains([]string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}, title) {
			t.Errorf("CHANGELOG.md has the heading %q", title)
		}
		entries, _, _ = strings.Cut(entries, "\n## ")
		entries, _, _ = strings.Cut(entries, "\n[")
		for entry := range strings.SplitSeq(strings.TrimPrefix(strings.TrimSpace(entries), "- "), "\n- ") {
			if !strings.HasSuffix(entry, ".") || strings.Contains(entry, ". ") {
				t.Errorf("CHANGELOG.md, %s: %q is not one sentence", title, entry)
			}
		}
	}
	if len(sections) < 5 {
		t.Errorf("CHANGELOG.md has only %d sections", len(sections))
	}
}
