// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/modelbox-operator/modelbox-operator/internal/version"
)

// checkFetchImage checks that the pods that fetch a model run the image of the controller. The
// flag is not in args, so that a patch of these keeps it.
func checkFetchImage(t *testing.T, objects []object) {
	t.Helper()
	controller := container(find[*appsv1.Deployment](t, objects, controllerName))
	// A component may add another flag behind it.
	if want := []string{"/controller", "--fetch-image=" + controller.Image}; !slices.Equal(controller.Command[:min(2, len(controller.Command))], want) {
		t.Errorf("the command of the controller is %q, want %q first", controller.Command, want)
	}
}

// kustomization returns the objects of a kustomization in which CONFIG is the folder config.
func kustomization(t *testing.T, text string) []object {
	t.Helper()
	return parse(t, kustomized(t, text))
}

func kustomized(t *testing.T, text string) string {
	t.Helper()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	config, err := filepath.Rel(folder, here)
	if err != nil {
		t.Fatal(err)
	}
	text = strings.ReplaceAll(text, "CONFIG", filepath.ToSlash(config))
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kustomize(t, folder)
}

func TestFetchImageOfTheInstall(t *testing.T) {
	checkFetchImage(t, install(t))
	checkFetchImage(t, render(t, "operator"))
}

// In an overlay that changes the image, the transformer has the last word.
func TestFetchImageOfAnOverlay(t *testing.T) {
	const patch = "patches: [{target: {kind: Deployment, name: modelbox-controller}, patch: '- %s'}]"
	for name, test := range map[string]struct{ fields, want string }{
		"nothing else": {"", "modelbox-controller:" + version.Version},
		"another name": {"images: [{name: modelbox-controller, newName: localhost:5000/team/controller}]", "localhost:5000/team/controller:" + version.Version},
		"another tag":  {"images: [{name: modelbox-controller, newTag: dev}]", "modelbox-controller:dev"},
		"a digest":     {"images: [{name: modelbox-controller, newName: r.io/c, digest: " + digestA + "}]", "r.io/c@" + digestA},
		"a component":  {"components: [CONFIG/monitoring/controller-tls]\nimages: [{name: modelbox-controller, newTag: dev}]", "modelbox-controller:dev"},
		"a patch of the image": {
			fmt.Sprintf(patch, "{op: replace, path: /spec/template/spec/containers/0/image, value: r.io/c:1}"), "r.io/c:1",
		},
		"a patch of args": {
			fmt.Sprintf(patch, "{op: add, path: /spec/template/spec/containers/0/args, value: [--namespaces=a]}") + "\nimages: [{name: modelbox-controller, newTag: dev}]",
			"modelbox-controller:dev",
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := kustomization(t, "resources: [CONFIG, CONFIG/monitoring]\ntransformers: [CONFIG/fetch-image]\n"+test.fields+"\n")
			checkFetchImage(t, objects)
			if got := container(find[*appsv1.Deployment](t, objects, controllerName)).Image; got != test.want {
				t.Errorf("the image is %q, want %q", got, test.want)
			}
		})
	}
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

func TestFetchImageOfTheDocumentedOverlays(t *testing.T) {
	texts := documented(t, "install.md", "//config?ref=")
	if len(texts) != 4 {
		t.Errorf("docs/install.md has %d kustomizations, want 4", len(texts))
	}
	for _, text := range texts {
		checkFetchImage(t, kustomization(t, text))
	}
}

// The kustomization of docs/model-platform.md gives the controller the flags that it shows, and no others.
func TestModelMirrorsOfTheDocumentedOverlay(t *testing.T) {
	texts := documented(t, "model-platform.md", "//config?ref=")
	if len(texts) != 1 {
		t.Fatalf("docs/model-platform.md has %d kustomizations, want 1", len(texts))
	}
	objects := kustomization(t, texts[0])
	checkFetchImage(t, objects)
	want := regexp.MustCompile(`--model-mirror=\S+`).FindAllString(texts[0], -1)
	if got := container(find[*appsv1.Deployment](t, objects, controllerName)).Args; len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the arguments are %q, want %q", got, want)
	}
}
