// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// Each command of docs/break-glass.md that changes something is followed by one that takes it back: in an install with
// another namespace, other images and a certificate, all objects are then as before, and the install can be applied again.
func TestBreakGlassIsTakenBack(t *testing.T) {
	env, err := testenv.Start(testenv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() })
	variables := []string{"IMG=registry.example.com/team/modelbox:v9"}
	images, failed := command(t, os.Getenv("KUBEBUILDER_ASSETS"), variables, "./hack/images.sh", "kustomization")
	if failed != "" {
		t.Fatal(failed)
	}
	text, failed := command(t, os.Getenv("KUBEBUILDER_ASSETS"), nil, "./hack/manifests.sh", "config/operator", "ops", "", images, "self-managed")
	if failed != "" {
		t.Fatal(failed)
	}
	install := func() {
		if _, err := env.Kubectl(text, "apply", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	install()
	page := readFile(t, "../docs/break-glass.md")
	caBundle := "Y2VydGlmaWNhdGU="
	kubectl(t, env, strings.ReplaceAll(blocks(t, page, "## Store objects without the webhook")[0], `"failurePolicy": "Ignore"`, `"clientConfig": {"caBundle": "`+caBundle+`"}`))
	before := stored(t, env, text)
	if bundles := strings.Count(before, "caBundle: "+caBundle); bundles != 10 {
		t.Fatalf("%d of the webhooks have a caBundle", bundles)
	}
	var back []string
	wants := []string{"caBundle: " + caBundle}
	for title, want := range map[string]string{
		"## Store objects without the webhook": "failurePolicy: Ignore",
		"## Lift a policy":                     "- Warn",
		"## Stop the controller":               "replicas: 0",
	} {
		commands := blocks(t, page, title)
		if len(commands) != 2 {
			t.Fatalf("%q has %d blocks, want a command and the way back", title, len(commands))
		}
		kubectl(t, env, commands[0])
		back, wants = append(back, commands[1]), append(wants, want)
	}
	during := stored(t, env, text)
	for _, want := range wants {
		if !strings.Contains(during, want) || strings.Count(during, caBundle) != 10 {
			t.Errorf("%q is not in what the commands change (-before +after):\n%s", want, cmp.Diff(before, during))
		}
	}
	kubectl(t, env, strings.Join(back, "\n"))
	if diff := cmp.Diff(before, stored(t, env, text)); diff != "" {
		t.Errorf("the commands are not taken back (-before +after):\n%s", diff)
	}
	install()
	if diff := cmp.Diff(before, stored(t, env, text)); diff != "" {
		t.Errorf("another apply of the install changes it (-before +after):\n%s", diff)
	}
}

// blocks returns the indented blocks of a section of a page.
func blocks(t *testing.T, page, title string) []string {
	t.Helper()
	_, text, found := strings.Cut(page, "\n"+title+"\n")
	if !found {
		t.Fatalf("no heading is %q", title)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return regexp.MustCompile(`(?m)^(    .*\n)+`).FindAllString(text, -1)
}

// kubectl runs commands of a page as an administrator, for the operator in the namespace ops.
func kubectl(t *testing.T, env *testenv.Env, commands string) {
	t.Helper()
	config, err := env.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "bash", "-euc", strings.ReplaceAll(commands, "modelbox-system", "ops"))
	run.Env = []string{"PATH=" + os.Getenv("KUBEBUILDER_ASSETS") + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "KUBECONFIG=" + config}
	if output, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, output, commands)
	}
}

var written = regexp.MustCompile(`(?m)^ +(resourceVersion|generation): .*\n`)

// stored returns the objects of a manifest as the API server has them, without what each write changes.
func stored(t *testing.T, env *testenv.Env, text string) string {
	t.Helper()
	objects, err := env.Kubectl(text, "get", "-f", "-", "-o", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	return written.ReplaceAllString(objects, "")
}
