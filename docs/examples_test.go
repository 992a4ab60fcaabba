// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"bytes"
	"html"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/scheme"

	cli "github.com/modelbox-operator/modelbox-operator/cli/command"
)

var (
	indented   = regexp.MustCompile(`(?m)^(    .*\n)+`)
	apiVersion = regexp.MustCompile(`(?m)^apiVersion: (\S+)$`)
	// The groups of the five kinds.
	ours     = regexp.MustCompile(`^(model\.github\.com|app\.huolala\.cn|mydomain\.com|extension\.k8s\.io|mtsre\.meitu\.com)/`)
	commands = regexp.MustCompile("(?ms)^```sh\n.*?^```\n")
)

// manifests returns the documents of a page's indented blocks that are whole manifests.
func manifests(page string) []string {
	var out []string
	for _, block := range indented.FindAllString(page, -1) {
		block = strings.ReplaceAll("\n"+block, "\n    ", "\n")
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
	checked := map[bool]int{}
	for _, page := range pages() {
		for _, manifest := range manifests(read(t, page)) {
			own := ours.MatchString(apiVersion.FindStringSubmatch(manifest)[1])
			checked[own]++
			if own {
				for _, command := range [][]string{{"lint"}, {"render"}, {"lint", "--strict"}} {
					if !strings.Contains(page, "model") && len(command) > 1 {
						continue // The pages about models have no warning either.
					}
					if output, ok := run(manifest, command...); !ok {
						t.Errorf("%s: %s: %s\n%s", page, command, output, manifest)
					}
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

// run runs a command of modelbox on a manifest.
func run(manifest string, command ...string) (string, bool) {
	var out bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(manifest), Out: &out, ErrOut: &out}
	code := cli.Run(cli.Env{IOStreams: streams, Program: "modelbox"}, append(command, "-f", "-"))
	return out.String(), code == 0
}

// The files of config/samples/more, which the tests of the webhooks create, are examples of
// servers.md, or modelbox.md has a link to them. The first example is also on the first pages, and in the tutorial, whose commands the
// end-to-end suite runs.
func TestExamplesAreSamples(t *testing.T) {
	for page, text := range map[string]string{
		"../README.md": sample(t, "../config/samples/more/ollama.yaml"), "../README.zh-CN.md": sample(t, "../config/samples/more/ollama.yaml"),
		"tutorial.md": "\nkubectl apply -f config/samples/more/ollama.yaml\n",
	} {
		if !strings.Contains(read(t, page), text) {
			t.Errorf("%s has no first example:\n%s", page, text)
		}
	}
	files, err := filepath.Glob("../config/samples/more/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d samples (%v)", len(files), err)
	}
	for _, file := range files {
		if !strings.Contains(read(t, "servers.md"), sample(t, file)) && !strings.Contains(read(t, "modelbox.md"), "("+file+")") {
			t.Errorf("%s is not in servers.md, word for word and indented by four spaces, and modelbox.md has no link to it", file)
		}
	}
}

// The picture of a terminal, which "make picture" draws from a cluster, has the errors of today.
func TestThePictureIsCurrent(t *testing.T) {
	picture := html.UnescapeString(regexp.MustCompile(`</text>\n *<text[^>]*>|<[^>]*>`).ReplaceAllString(read(t, "pictures/terminal.svg"), " "))
	manifest := regexp.MustCompile(`box bad '(.*)' >`).FindStringSubmatch(read(t, "../hack/local/demo.sh"))
	output, _ := run("{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: bad}, spec: "+manifest[1]+"}", "lint")
	found := regexp.MustCompile(`(?m) (spec\..*)$`).FindAllStringSubmatch(output, -1)
	for _, each := range found {
		if !strings.Contains(strings.Join(strings.Fields(picture), " "), "* "+each[1]) {
			t.Errorf("make picture: it does not have %s", each[1])
		}
	}
	if len(found) != 3 {
		t.Errorf("lint says %s", output)
	}
}

func TestTheTutorialIsTranslated(t *testing.T) {
	english, chinese := commands.FindAllString(read(t, "tutorial.md"), -1), commands.FindAllString(read(t, "zh-CN/tutorial.md"), -1)
	if !slices.Equal(english, chinese) {
		t.Errorf("the commands differ:\n%s\n%s", english, chinese)
	}
}

// sample returns a file as a page has it.
func sample(t *testing.T, file string) string {
	t.Helper()
	return "    " + strings.ReplaceAll(strings.TrimSpace(read(t, file)), "\n", "\n    ") + "\n"
}
