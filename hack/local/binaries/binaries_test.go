// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
)

const repository = "../../.."

// recorder is a fake of the sites and the compiler.
type recorder struct {
	mu    sync.Mutex
	calls []string

	published bool
	fetchErr  error
	buildErr  map[string]error
}

func (r *recorder) called(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, what)
}

func (r *recorder) locate(t tool, _ string) (release, bool) {
	return release{url: t.name}, r.published
}

func (r *recorder) fetch(_ context.Context, from release, dest string, _ *progress.Step) error {
	r.called("fetch " + from.url)
	if r.fetchErr != nil {
		return r.fetchErr
	}
	return os.WriteFile(dest, []byte(program), 0o600)
}

func (r *recorder) build(_ context.Context, _ pins, t tool, dest string, _ *progress.Step) error {
	r.called("build " + t.name)
	// A compiler that fails may leave a file.
	if err := os.WriteFile(dest, []byte(program), 0o600); err != nil {
		return err
	}
	return r.buildErr[t.name]
}

func (r *recorder) filler(dir string, out io.Writer) *filler {
	return &filler{
		dir:    dir,
		pins:   pins{versions: map[string]string{kubernetesModule: "v1.2.3", etcdModule: "v3.4.5", kwokModule: "v0.6.7"}},
		report: progress.New(out, false),
		locate: r.locate, fetch: r.fetch, build: r.build,
	}
}

func all(verb string) []string {
	var calls []string
	for _, name := range Names() {
		calls = append(calls, verb+" "+name)
	}
	return calls
}

func TestFill(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	tests := map[string]struct {
		present   []string
		does      *recorder
		wantCalls []string
		wantErr   error
		wantSaid  string
	}{
		"downloads what is published": {
			does:      &recorder{published: true},
			wantCalls: all("fetch"),
			wantSaid:  "downloading kube-apiserver v1.2.3 (1 of 7)",
		},
		"builds what is not published": {
			does:      &recorder{},
			wantCalls: all("build"),
			wantSaid:  "building etcd v3.4.5 from its Go module (5 of 7)",
		},
		"builds what cannot be downloaded, and prints the reason": {
			present:   Names()[1:],
			does:      &recorder{published: true, fetchErr: broken},
			wantCalls: []string{"fetch kube-apiserver", "build kube-apiserver"},
			wantSaid:  "  broken; it is built instead\n",
		},
		"adds only what is missing": {
			present:   Names()[:6],
			does:      &recorder{},
			wantCalls: []string{"build kwokctl"},
			wantSaid:  "building kwokctl v0.6.7 from its Go module (1 of 1)",
		},
		"keeps what was completed before a failure": {
			does:      &recorder{buildErr: map[string]error{"kubectl": broken}},
			wantCalls: all("build")[:4],
			wantErr:   broken,
			wantSaid:  "building kubectl v1.2.3 from its Go module (4 of 7): failed",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "set")
			for _, file := range test.present {
				put(t, dir, file)
			}
			var said bytes.Buffer
			err := test.does.filler(dir, &said).fill(t.Context())
			if !errors.Is(err, test.wantErr) {
				t.Errorf("got %v, want %v", err, test.wantErr)
			}
			if diff := cmp.Diff(test.wantCalls, test.does.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if !strings.Contains(said.String(), test.wantSaid) {
				t.Errorf("the output is %q, without %q", said.String(), test.wantSaid)
			}
			checkNothingPartial(t, dir)
			checkSet(t, dir, test.wantErr == nil)
		})
	}
}

// checkSet checks that every file of the set is complete and executable.
func checkSet(t *testing.T, dir string, complete bool) {
	t.Helper()
	if got := len(missing(dir)) == 0; got != complete {
		t.Errorf("complete: %v, want %v (missing %v)", got, complete, names(missing(dir)))
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil || string(content) != program {
			t.Errorf("%s holds %q, %v", entry.Name(), content, err)
		}
	}
}

func put(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestConcurrentFillsBuildOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "set")
	does := &recorder{}
	var fillers sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		fillers.Go(func() { errs[i] = does.filler(dir, io.Discard).fill(t.Context()) })
	}
	fillers.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all("build"), does.calls); diff != "" {
		t.Errorf("builds (-want +got):\n%s", diff)
	}
	checkSet(t, dir, true)
}

func TestFillRemovesFilesOfAKilledProcess(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "set")
	put(t, dir+".partial-123", "kube-apiserver")
	if err := (&recorder{}).filler(dir, io.Discard).fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkSet(t, dir, true)
	checkNothingPartial(t, dir)
}

func checkNothingPartial(t *testing.T, dir string) {
	t.Helper()
	if left, err := filepath.Glob(dir + ".partial*"); err != nil || len(left) > 0 {
		t.Errorf("not removed: %v, %v", left, err)
	}
}

func TestFillStopsWhenInterrupted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "set")
	ctx, cancel := context.WithCancel(t.Context())
	does := &recorder{published: true}
	f := does.filler(dir, io.Discard)
	f.fetch = func(ctx context.Context, from release, dest string, step *progress.Step) error {
		cancel()
		return errors.Join(does.fetch(ctx, from, dest, step), ctx.Err())
	}
	if err := f.fill(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if diff := cmp.Diff([]string{"fetch kube-apiserver"}, does.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	checkSet(t, dir, false)
	checkNothingPartial(t, dir)
}

func TestMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range Names() {
		put(t, dir, name)
	}
	if got := missing(dir); got != nil {
		t.Fatalf("a complete set lacks %v", names(got))
	}
	spoil := map[string]func(path string) error{
		"etcd":    func(path string) error { return os.Chmod(path, 0o644) },
		"kubectl": func(path string) error { return os.Truncate(path, 0) },
		"kwok":    os.Remove,
		"kwokctl": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) },
	}
	want := []string{"kubectl", "etcd", "kwok", "kwokctl"}
	for name, do := range spoil {
		if err := do(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, names(missing(dir))); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

func TestEnsureOverride(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range Names()[1:] {
		put(t, dir, name)
	}
	_, err := Ensure(t.Context(), Config{Override: dir})
	if err == nil || !strings.Contains(err.Error(), "lacks kube-apiserver: add them or unset") {
		t.Errorf("got %v, want an error that names the missing programs", err)
	}
	put(t, dir, Names()[0])
	got, err := Ensure(t.Context(), Config{Override: dir})
	if err != nil || got != dir {
		t.Errorf("got %q and %v, want %q", got, err, dir)
	}
}

func TestEnsureFindsACompleteSet(t *testing.T) {
	t.Parallel()
	pinned, err := readPins(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	f := newFetcher(officialSites)
	cache := t.TempDir()
	want := filepath.Join(cache, pinned.key(f.goos, f.goarch))
	for _, name := range Names() {
		put(t, want, name)
	}
	got, err := Ensure(t.Context(), Config{Root: repository, Cache: cache, Report: progress.New(io.Discard, false)})
	if err != nil || got != want {
		t.Errorf("got %q and %v, want %q", got, err, want)
	}
}

func TestReadPins(t *testing.T) {
	t.Parallel()
	pinned, err := readPins(t.Context(), repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range []string{kubernetesModule, etcdModule, kwokModule} {
		if major, minor := semver(pinned.version(module)); major == "" || minor == "" {
			t.Errorf("%s is pinned at %q", module, pinned.version(module))
		}
	}
	if _, err := readPins(t.Context(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "clone") {
		t.Errorf("outside a clone: got %v, want an error that says so", err)
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	pinned := func(digest string) pins {
		return pins{versions: map[string]string{kubernetesModule: "v1.37.1"}, digest: []byte(digest)}
	}
	base := pinned("a").key("linux", "amd64")
	if !strings.HasPrefix(base, "v1.37.1-linux-amd64-") {
		t.Errorf("%q does not begin with the version and the platform", base)
	}
	if again := pinned("a").key("linux", "amd64"); again != base {
		t.Errorf("the same input gave %q and %q", base, again)
	}
	others := []string{pinned("b").key("linux", "amd64"), pinned("a").key("darwin", "amd64"), pinned("a").key("linux", "arm64")}
	for _, other := range others {
		if other == base {
			t.Errorf("another input gave %q too", other)
		}
	}
}

func TestLinkerFlags(t *testing.T) {
	t.Parallel()
	var known origin
	known.Time = time.Date(2026, 9, 23, 17, 6, 22, 0, time.UTC)
	known.Origin.Hash = "0123abc"
	const base, client = "-X k8s.io/component-base/version.", "-X k8s.io/client-go/pkg/version."
	tests := map[string]struct {
		tool    string
		version string
		from    origin
		want    string
	}{
		"Kubernetes gets its version": {
			tool: "kubectl", version: "v1.37.1", from: known,
			want: "-s -w " +
				base + "gitVersion=v1.37.1 " + base + "gitMajor=1 " + base + "gitMinor=37 " + base + "gitTreeState=clean " +
				base + "gitCommit=0123abc " + base + "buildDate=2026-09-23T17:06:22Z " +
				client + "gitVersion=v1.37.1 " + client + "gitMajor=1 " + client + "gitMinor=37 " + client + "gitTreeState=clean " +
				client + "gitCommit=0123abc " + client + "buildDate=2026-09-23T17:06:22Z",
		},
		"an unknown date is omitted, an unknown commit is empty": {
			tool: "kube-apiserver", version: "v1.37.1",
			want: "-s -w " +
				base + "gitVersion=v1.37.1 " + base + "gitMajor=1 " + base + "gitMinor=37 " + base + "gitTreeState=clean " +
				base + "gitCommit= " +
				client + "gitVersion=v1.37.1 " + client + "gitMajor=1 " + client + "gitMinor=37 " + client + "gitTreeState=clean " +
				client + "gitCommit=",
		},
		"other modules get no version": {tool: "etcd", version: "v3.7.0", from: known, want: "-s -w"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, linkerFlags(toolNamed(t, test.tool), test.version, test.from)); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuildOutput(t *testing.T) {
	t.Parallel()
	output := &buildOutput{step: quietStep(t)}
	for range 30 {
		_, _ = io.WriteString(output, "go: downloading example.com/m v1.0.0\n")
	}
	_, _ = io.WriteString(output, "the last line\n")
	if output.fetched != 30 {
		t.Errorf("counted %d modules, want 30", output.fetched)
	}
	lines := strings.Split(output.tail(), "\n")
	if len(lines) != tailLines || lines[tailLines-1] != "the last line" {
		t.Errorf("the tail is %q", lines)
	}
}

func TestGoBuildReturnsCompilerErrors(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	module := filepath.Join(root, "hack", "tools", "kube")
	if err := os.MkdirAll(module, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"go.mod": "module example.com/broken\n", "main.go": "package main\n\nfunc main() { undefined() }\n"}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(module, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dest := filepath.Join(root, "out")
	broken := tool{name: "broken", module: "example.com/broken", pkg: ".", pinnedIn: "kube"}
	err := goBuild(t.Context(), pins{root: root}, broken, dest, quietStep(t))
	if err == nil || !strings.Contains(err.Error(), "undefined: undefined") || !strings.Contains(err.Error(), OverrideEnv) {
		t.Errorf("got %v, want the compiler's error and the name of the override variable", err)
	}
}
