// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	semver "k8s.io/apimachinery/pkg/util/version"

	"github.com/modelbox-operator/modelbox-operator/internal/version"
	"github.com/modelbox-operator/modelbox-operator/test/golden"
)

// isRelease reports whether the version of this commit is one that is released: between two releases it ends in -dev.
func isRelease() bool { return !strings.Contains(version.Version, "-") }

// lastRelease returns the version of the newest section of CHANGELOG.md. Pages have it where something of a release is
// fetched.
func lastRelease(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$`).FindStringSubmatch(read(t, "../CHANGELOG.md"))
	if found == nil {
		t.Fatal("CHANGELOG.md has no release")
	}
	return "v" + found[1]
}

// A release is the newest section of CHANGELOG.md, which is read in five minutes, and nothing is unreleased. Between
// releases the version is a later one.
func TestTheChangelogHasTheVersion(t *testing.T) {
	last, text := lastRelease(t), read(t, "../CHANGELOG.md")
	if since := "/compare/" + last + "...HEAD"; !strings.Contains(text, since) {
		t.Errorf("CHANGELOG.md has no link %s", since)
	}
	newest, _, _ := strings.Cut(strings.SplitN(text, "\n## [", 3)[2], "\n## [")
	if words := len(strings.Fields(newest)); words > 1250 || !strings.Contains(newest, "\n### Before and after the upgrade\n") {
		t.Errorf("CHANGELOG.md: %s has %d words, or does not say what to do before and after the upgrade", last, words)
	}
	if isRelease() {
		if version.Version != last {
			t.Errorf("VERSION is %s, and the newest section of CHANGELOG.md %s", version.Version, last)
		}
		if unreleased := strings.TrimSpace(section(t, text, "## [Unreleased]")); unreleased != "" {
			t.Errorf("CHANGELOG.md: what is unreleased belongs to %s:\n%s", last, unreleased)
		}
	} else if !semver.MustParseSemantic(last).LessThan(semver.MustParseSemantic(version.Version)) {
		t.Errorf("VERSION is %s, which is not later than the release %s", version.Version, last)
	}
}

var (
	// Every version with a v in front, and those of ours that have none: of the chart, and its file.
	anyVersion = regexp.MustCompile(`\bv\d+\.\d+\.\d+\b(?:-[a-z][\w.]*)?|(--version |modelbox-operator-)\d+\.\d+\.\d+(?:-[a-z][\w.]*)?`)
	// Lines that name the versions of others.
	ofOthers = regexp.MustCompile(`vllm|\buses: |controller-gen`)
	// The folders and files that may name a version of ours. What is generated from VERSION has a test of its own.
	naming = regexp.MustCompile(`\.md$|^config/samples/|^(charts|certs|config|hack|\.github)/.*\.(ya?ml|tpl|txt|sh|mk|mjs)$|^(Makefile|Dockerfile\.)`)
	// How a release is made; the table of other projects; modules, programs and manifests of others; earlier releases; and
	// what is generated from VERSION.
	notNaming = regexp.MustCompile(`^CONTRIBUTING\.md$|^docs/compared\.md$|^test/crds/|^hack/(tools/|binaries\.sh)|^CHANGELOG\.md$|/testdata/|^config/images/|/Chart\.yaml$|^docs/(cli|flags)\.md$`)
)

// Pages, samples, the chart, workflows and scripts name the last release wherever they name a version of ours, such as
// ?ref=, --branch, and the tags of images. With -update it is written into them.
func TestPagesNameTheLastRelease(t *testing.T) {
	last, checked := lastRelease(t), 0
	files, err := exec.CommandContext(t.Context(), "git", "-C", "..", "ls-files").Output()
	if err != nil {
		t.Fatal(err)
	}
	for file := range strings.Lines(string(files)) {
		if file = strings.TrimSpace(file); !naming.MatchString(file) || notNaming.MatchString(file) {
			continue
		}
		file = filepath.Join("..", file)
		lines := slices.Collect(strings.Lines(read(t, file)))
		for i, line := range lines {
			if ofOthers.MatchString(line) {
				continue
			}
			lines[i] = anyVersion.ReplaceAllStringFunc(line, func(found string) string {
				checked++
				if prefix := anyVersion.FindStringSubmatch(found)[1]; prefix != "" {
					return prefix + strings.TrimPrefix(last, "v")
				}
				return last
			})
		}
		golden.Equal(t, file, []byte(strings.Join(lines, "")))
	}
	if checked < 50 {
		t.Errorf("only %d versions were found", checked)
	}
}
