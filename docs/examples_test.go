// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/modelbox-operator/modelbox-operator/cli/command"
)

var (
	indented   = regexp.MustCompile(`(?m)^(    .*\n)+`)
	apiVersion = regexp.MustCompile(`(?m)^apiVersion: (\S+)$`)
	// The groups of the five kinds.
	ours = regexp.MustCompile(`^(model\.github\.com|app\.huolala\.cn|mydomain\.com|extension\.k8s\.io|mtsre\.meitu\.com)/`)
	// The first ModelBox of a reader is the input of a command.
	heredoc = regexp.MustCompile(`(?s)<<'?EOF'?\n(.*?)\nEOF\n`)
)

// manifests returns the documents of a page's indented blocks that are whole manifests.
func manifests(page string) []string {
	var out []string
	for _, block := range indented.FindAllString(page, -1) {
		block = strings.ReplaceAll("\n"+block, "\n    ", "\n")
		if input := heredoc.FindStringSubmatch(block); input != nil {
			block = "\n" + input[1] + "\n"
		}
		for document := range strings.SplitSeq(block, "\n---\n") {
			if apiVersion.MatchString(document) && strings.Contains(document, "\nkind: ") && !strings.Contains(document, "\n$ ") {
				out = append(out, document)
			}
		}
	}
	return out
}

// Each manifest on a page is one that a reader can apply: those of our kinds pass the schema, the
// defaults and the rules, and those of Kubernetes' own kinds have no unknown field.
func TestManifestsOfThePagesAreValid(t *testing.T) {
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := map[bool]int{}
	for _, page := range append(pages, "../README.md") {
		for _, manifest := range manifests(read(t, page)) {
			own := ours.MatchString(apiVersion.FindStringSubmatch(manifest)[1])
			checked[own]++
			if own {
				if output, ok := lint(manifest); !ok {
					t.Errorf("%s: %s\n%s", page, output, manifest)
				}
			} else if _, _, err := strict.Decode([]byte(manifest), nil, nil); err != nil && !runtime.IsNotRegisteredError(err) {
				t.Errorf("%s: %v\n%s", page, err, manifest)
			}
		}
	}
	if checked[true] < 15 || checked[false] < 10 {
		t.Errorf("only %d manifests of our kinds and %d others were found", checked[true], checked[false])
	}
}

// lint runs "modelbox lint" on a manifest.
func lint(manifest string) (string, bool) {
	var out bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(manifest), Out: &out, ErrOut: &out}
	code := command.Run(command.Env{IOStreams: streams, Program: "modelbox"}, []string{"lint", "-f", "-"})
	return out.String(), code == 0
}

// The examples of the page of ModelBoxes are the files of config/samples/more, which the tests
// of the webhooks create.
func TestExamplesAreSamples(t *testing.T) {
	page := read(t, "modelbox.md")
	files, err := filepath.Glob("../config/samples/more/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d samples (%v)", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page, "    "+strings.ReplaceAll(strings.TrimSpace(string(data)), "\n", "\n    ")+"\n") {
			t.Errorf("%s is not in modelbox.md, word for word and indented by four spaces", file)
		}
	}
}
