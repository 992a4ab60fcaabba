// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tour

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

func TestOutsideOfAPod(t *testing.T) {
	t.Parallel()
	got := outsideOfAPod([]string{"--uri=http://a/b", "--volume=/volume", "--directory=model"}, "/tmp/v", "/tmp/v.log")
	if d := cmp.Diff([]string{"--termination-log=/tmp/v.log", "--uri=http://a/b", "--volume=/tmp/v", "--directory=model"}, got); d != "" {
		t.Error(d)
	}
}

// The tour runs the program as the demo builds it.
func TestAModelIsFetchedByTheDemo(t *testing.T) {
	program := filepath.Join(t.TempDir(), fetcher)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = filepath.Join(testenv.Root(), "fetch")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Setenv("TMPDIR", t.TempDir())
	files, replaced := archive("config.json", "weights.safetensors"), archive("config.json")
	server, err := serveModel(files)
	if err != nil {
		t.Fatal(err)
	}
	defer server.close()
	printed := &bytes.Buffer{}
	tour := &Tour{Out: printed, FetchModel: program}
	init := corev1.Container{Name: fetcher, Command: []string{"/fetch-model"}, Args: []string{
		"--uri=http://" + server.address + "/tiny.tar.gz", fmt.Sprintf("--sha256=%x", sha256.Sum256(files)),
		"--volume=/volume", "--directory=model", "--size-limit=1000000",
	}}
	expect := func(run func(context.Context, corev1.Container) error, want string) {
		t.Helper()
		printed.Reset()
		if err := run(t.Context(), init); err != nil || !strings.Contains(printed.String(), want) {
			t.Errorf("%v: %s", err, printed)
		}
	}
	expect(tour.fetched, "ok the volume has model/config.json, model/weights.safetensors")
	if err := tour.refusedModel(t.Context(), init); err == nil {
		t.Error("a complete model is taken for a refused one")
	}
	server.files.Store(&replaced)
	expect(tour.refusedModel, "[WrongHash]")
	if err := tour.fetched(t.Context(), init); err == nil {
		t.Error("a refused model is taken for a complete one")
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}
