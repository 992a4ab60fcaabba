// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// The kustomization of docs/models.md, with this folder in place of the repository, gives the
// controller the flags that it shows, and no others.
func TestModelMirrorsOfTheDocumentedOverlay(t *testing.T) {
	page, err := os.ReadFile("../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range regexp.MustCompile(`(?m)^(    .*\n)+`).FindAllString(string(page), -1) {
		if !strings.Contains(block, "//config?ref=") {
			continue
		}
		found++
		text := regexp.MustCompile(`https://\S+//config(\S*)\?ref=\S+`).ReplaceAllString(block, "CONFIG$1")
		objects := kustomization(t, strings.ReplaceAll(text, "\n    ", "\n")[len("    "):])
		checkFetchImage(t, objects)
		want := regexp.MustCompile(`--model-mirror=\S+`).FindAllString(block, -1)
		if got := container(find[*appsv1.Deployment](t, objects, controllerName)).Args; len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("the arguments are %q, want %q", got, want)
		}
	}
	if found != 1 {
		t.Errorf("docs/models.md has %d kustomizations, want 1", found)
	}
}
