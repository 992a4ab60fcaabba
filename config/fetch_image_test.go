// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
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
	if done, ok := rendered[text]; ok {
		return done
	}
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
	key := text
	text = strings.ReplaceAll(text, "CONFIG", filepath.ToSlash(config))
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rendered[key] = kustomize(t, folder)
	return rendered[key]
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
			objects := kustomization(t, "resources: [CONFIG/operator, CONFIG/monitoring]\ntransformers: [CONFIG/fetch-image]\n"+test.fields+"\n")
			checkFetchImage(t, objects)
			if got := container(find[*appsv1.Deployment](t, objects, controllerName)).Image; got != test.want {
				t.Errorf("the image is %q, want %q", got, test.want)
			}
		})
	}
}
