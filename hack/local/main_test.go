// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

func TestDispatchPrintsUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"help"}, {"-h"}, {"--help"}} {
		var out bytes.Buffer
		if err := dispatch(t.Context(), args, &out); err != nil {
			t.Fatal(err)
		}
		for _, c := range commands {
			if !strings.Contains(out.String(), "  "+c.name+" ") || !strings.Contains(out.String(), c.does) {
				t.Errorf("%q: %s is missing in\n%s", args, c.name, out.String())
			}
		}
	}
}

func TestDispatchRefuses(t *testing.T) {
	for name, args := range map[string][]string{"a typing error": {"upp"}, "too much": {"up", "now"}, "a flag": {"--force"}} {
		err := dispatch(t.Context(), args, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), "go run ./hack/local") {
			t.Errorf("%s: got %v, want an error that names the list of commands", name, err)
		}
	}
	t.Setenv("CLUSTER", "../else")
	err := dispatch(t.Context(), []string{"down"}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), `CLUSTER: "../else" is not a valid cluster name`) {
		t.Errorf("a bad name: got %v", err)
	}
}

func TestFindRoot(t *testing.T) {
	root := t.TempDir()
	inside := filepath.Join(root, "webhook", "modelbox")
	tools := filepath.Join(root, "hack", "tools", "kube")
	for _, dir := range []string{inside, tools} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(inside)
	if found, err := findRoot(); err == nil {
		t.Errorf("found %s, although there is no repository", found)
	}
	if err := os.WriteFile(filepath.Join(tools, "go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	// The path of a temporary directory may contain a symbolic link.
	if want, _ := filepath.EvalSymlinks(root); found != root && found != want {
		t.Errorf("found %s, want %s", found, root)
	}
}

func TestWebhooksEnabled(t *testing.T) {
	for value, want := range map[string]bool{"": true, "true": true, "1": true, "false": false, "0": false} {
		t.Setenv("ENABLE_WEBHOOKS", value)
		if got, err := webhooksEnabled(); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", value, got, err, want)
		}
	}
	t.Setenv("ENABLE_WEBHOOKS", "no")
	if _, err := webhooksEnabled(); err == nil || !strings.Contains(err.Error(), "set it to true or false") {
		t.Errorf(`"no": got %v, want an error that names the allowed values`, err)
	}
}

func TestLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := filepath.Join(dir, "kubectl")
	for _, to := range []string{"/a/kubectl", "/a/kubectl", "/b/kubectl"} {
		if err := link(to, at); err != nil {
			t.Fatal(err)
		}
		if now, err := os.Readlink(at); err != nil || now != to {
			t.Errorf("links to %q, %v, want %q", now, err, to)
		}
	}
	// A regular file is replaced too: bin belongs to the build.
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := link("/a/kubectl", at); err != nil {
		t.Fatal(err)
	}
}

// A variable of the Makefile with the name of one that a user sets would take its value.
func TestMakeRunTakesTheVariables(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip(err)
	}
	command := exec.Command("make", "-n", "run", localEnv+"=1", contextEnv+"=dev", "ENABLE_WEBHOOKS=false")
	command.Dir = testenv.Root()
	out, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "exec bin/local run") {
		t.Errorf("%v: make run is\n%s", err, out)
	}
}
