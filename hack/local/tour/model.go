// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tour

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// fetcher is the init container that fetches the model of a ModelBox.
const fetcher = "fetch-model"

// model shows how a model gets to the server of a ModelBox. The simulated nodes run no containers, so
// it runs the command of the init container on this machine.
func (t *Tour) model(ctx context.Context) error {
	files, replaced := archive("config.json", "weights.safetensors"), archive("config.json")
	server, err := serveModel(files)
	if err != nil {
		return err
	}
	defer server.close()
	manifest := fmt.Sprintf(`{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: tiny}, spec: {image: "nginx:1.27",
  model: {uri: "http://%s/tiny.tar.gz", sha256: %x}}}`, server.address, sha256.Sum256(files))
	t.line("   $ kubectl apply -f -")
	t.indent(manifest)
	if output, err := t.quietly(ctx, manifest, "apply", "-f", "-"); err != nil {
		return fmt.Errorf("applying a ModelBox with a model: %s: %w", output, err)
	}
	init, err := t.awaitFetcher(ctx)
	if err != nil {
		return err
	}
	t.line("   its pods have an init container that fetches and verifies the model, from the image %s", init.Image)
	t.line("   these nodes are simulated and run no container, so the demo runs its command itself, with a temporary directory as the volume")
	if err := t.fetched(ctx, init); err != nil {
		return err
	}
	t.line("   the file on the server is replaced, and the same command runs again, as in a new pod")
	server.files.Store(&replaced)
	return t.refusedModel(ctx, init)
}

// awaitFetcher waits for the Deployment, and returns its init container.
func (t *Tour) awaitFetcher(ctx context.Context) (init corev1.Container, err error) {
	err = t.until(ctx, "the init container of deployment/tiny", func(ctx context.Context) (string, bool) {
		d := get(ctx, t, &appsv1.Deployment{ObjectMeta: named("tiny")})
		if d.UID == "" || len(d.Spec.Template.Spec.InitContainers) == 0 {
			return "", false
		}
		init = d.Spec.Template.Spec.InitContainers[0]
		return "", init.Name == fetcher
	})
	return init, err
}

// fetched runs a fetch that is successful, and shows the files.
func (t *Tour) fetched(ctx context.Context, init corev1.Container) error {
	for _, part := range wrap("$ "+shellWords(slices.Concat(init.Command, init.Args)), 112) {
		t.line("   %s", part)
	}
	volume, _, err := t.fetch(ctx, init)
	defer os.RemoveAll(volume) //nolint:errcheck // The system removes temporary files too.
	if err != nil {
		return err
	}
	found, err := list(volume)
	if err != nil {
		return err
	}
	return t.check(strings.Join(found, ", ") == "model/config.json, model/weights.safetensors", "the volume has %s", strings.Join(found, ", "))
}

// refusedModel runs a fetch that must fail, and shows its last word.
func (t *Tour) refusedModel(ctx context.Context, init corev1.Container) error {
	volume, lastWord, err := t.fetch(ctx, init)
	defer os.RemoveAll(volume) //nolint:errcheck // As above.
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		return errors.Join(errors.New("a fetch of a file with another hash must end with exit code 1"), err)
	}
	found, err := list(volume)
	if err != nil {
		return err
	}
	return t.check(strings.HasPrefix(lastWord, "[WrongHash]") && len(found) == 0,
		"nothing is in the volume, and the last line is the container's termination message, which status shows")
}

// fetch runs the command of an init container with a new directory as its volume. It returns the directory
// and the termination message.
func (t *Tour) fetch(ctx context.Context, init corev1.Container) (volume, lastWord string, err error) {
	volume, err = os.MkdirTemp("", "modelbox-demo-")
	if err != nil {
		return "", "", err
	}
	terminationLog := volume + ".termination-log"
	defer os.Remove(terminationLog) //nolint:errcheck // A successful fetch writes none.
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, t.FetchModel, outsideOfAPod(init.Args, volume, terminationLog)...)
	output, err := command.CombinedOutput()
	t.indent(string(output))
	if err != nil && ctx.Err() != nil {
		return volume, "", fmt.Errorf("running %s: %w", fetcher, ctx.Err())
	}
	message, _ := os.ReadFile(terminationLog)
	return volume, string(message), err
}

// outsideOfAPod returns the arguments with other paths for what is mounted in a pod.
func outsideOfAPod(args []string, volume, terminationLog string) []string {
	out := []string{"--termination-log=" + terminationLog}
	for _, arg := range args {
		if strings.HasPrefix(arg, "--volume=") {
			arg = "--volume=" + volume
		}
		out = append(out, arg)
	}
	return out
}

// list returns the files of a volume.
func list(volume string) (found []string, err error) {
	err = filepath.WalkDir(volume, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, strings.TrimPrefix(path, volume+string(filepath.Separator)))
		}
		return err
	})
	return found, err
}

// modelServer serves the same bytes at every URL.
type modelServer struct {
	address string
	files   atomic.Pointer[[]byte]
	server  *http.Server
}

// serveModel starts a server on the loopback address.
func serveModel(files []byte) (*modelServer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serving a model: %w", err)
	}
	s := &modelServer{address: listener.Addr().String()}
	s.files.Store(&files)
	s.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(*s.files.Load()))
	})}
	go func() { _ = s.server.Serve(listener) }() // It ends with close.
	return s, nil
}

func (s *modelServer) close() { _ = s.server.Close() }

// archive returns a tar.gz with files of these names.
func archive(names ...string) []byte {
	out := &bytes.Buffer{} // Writing to it does not fail.
	compressed := gzip.NewWriter(out)
	files := tar.NewWriter(compressed)
	for _, name := range names {
		content := strings.Repeat(name+"\n", 1000)
		_ = files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))})
		_, _ = io.WriteString(files, content)
	}
	_ = files.Close()
	_ = compressed.Close()
	return out.Bytes()
}
