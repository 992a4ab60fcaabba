// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
)

const program = "#!/bin/sh\necho a program\n"

func sum(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }

// text returns a handler that responds to every request with content.
func text(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, content) }
}

// targz returns an archive of files, which are pairs of name and content.
func targz(t *testing.T, files ...string) string {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	for i := 0; i < len(files); i += 2 {
		header := &tar.Header{Name: files[i], Mode: 0o755, Size: int64(len(files[i+1])), Typeflag: tar.TypeReg}
		if err := packed.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(packed, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(packed.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// testFetcher returns a fetcher for a platform that both sites support, and the fake
// server of both sites.
func testFetcher(t *testing.T, handler http.Handler) (*fetcher, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	f := newFetcher(sites{kubernetes: server.URL + "/release", etcd: server.URL + "/etcd", hosts: []string{"127.0.0.1"}})
	f.goos, f.goarch = "linux", "amd64"
	return f, server
}

func quietStep(t *testing.T) *progress.Step {
	t.Helper()
	step := progress.New(io.Discard, false).Start("test")
	t.Cleanup(step.Done)
	return step
}

func TestFetch(t *testing.T) {
	t.Parallel()
	const binary = "/release/v1.37.1/bin/linux/amd64/kubectl"
	const archive = "/etcd/v3.7.0/etcd-v3.7.0-linux-amd64.tar.gz"
	etcd := targz(t, "etcd-v3.7.0-linux-amd64/README.md", "read me", "etcd-v3.7.0-linux-amd64/etcd", program)
	other := targz(t, "etcd-v3.7.0-linux-amd64/README.md", "read me")

	tests := map[string]struct {
		tool    string
		handler map[string]http.HandlerFunc
		wantErr string // empty: the download succeeds
	}{
		"a program with its checksum": {
			tool: "kubectl",
			handler: map[string]http.HandlerFunc{
				binary: text(program), binary + ".sha256": text(sum(program) + "\n"),
			},
		},
		"a program in an archive": {
			tool: "etcd",
			handler: map[string]http.HandlerFunc{
				archive: text(etcd),
				"/etcd/v3.7.0/SHA256SUMS": text(sum("x") + "  etcd-v3.7.0-linux-arm64.tar.gz\n" +
					sum(etcd) + "  etcd-v3.7.0-linux-amd64.tar.gz\n"),
			},
		},
		"an archive without the program": {
			tool: "etcd",
			handler: map[string]http.HandlerFunc{
				archive:                   text(other),
				"/etcd/v3.7.0/SHA256SUMS": text(sum(other) + "  etcd-v3.7.0-linux-amd64.tar.gz\n"),
			},
			wantErr: "the archive does not contain etcd-v3.7.0-linux-amd64/etcd",
		},
		"content that does not match the checksum": {
			tool: "kubectl",
			handler: map[string]http.HandlerFunc{
				binary: text(program + "evil"), binary + ".sha256": text(sum(program)),
			},
			wantErr: "does not match its published checksum",
		},
		"an archive that does not match the checksum is never opened": {
			tool: "etcd",
			handler: map[string]http.HandlerFunc{
				archive:                   text("not even gzip"),
				"/etcd/v3.7.0/SHA256SUMS": text(sum(etcd) + "  etcd-v3.7.0-linux-amd64.tar.gz\n"),
			},
			wantErr: "does not match its published checksum",
		},
		"no checksum published": {
			tool:    "kubectl",
			handler: map[string]http.HandlerFunc{binary: text(program)},
			wantErr: "kubectl.sha256: 404 Not Found",
		},
		"no program published": {
			tool:    "kubectl",
			handler: map[string]http.HandlerFunc{binary + ".sha256": text(sum(program))},
			wantErr: "bin/linux/amd64/kubectl: 404 Not Found",
		},
		"a page of an intermediary instead of a checksum": {
			tool: "kubectl",
			handler: map[string]http.HandlerFunc{
				binary: text(program), binary + ".sha256": text("<html>please log in</html>"),
			},
			wantErr: "it contains no checksum of kubectl",
		},
		"a download that ends early": {
			tool: "kubectl",
			handler: map[string]http.HandlerFunc{
				binary + ".sha256": text(sum(program)),
				binary: func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Length", fmt.Sprint(len(program)))
					_, _ = io.WriteString(w, program[:5])
				},
			},
			wantErr: "unexpected EOF",
		},
		"a redirect to a known host": {
			tool: "kubectl",
			handler: map[string]http.HandlerFunc{
				binary + ".sha256": text(sum(program)),
				binary: func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, "/cdn/kubectl", http.StatusFound)
				},
				"/cdn/kubectl": text(program),
			},
		},
		"a redirect to an unknown host": {
			tool: "kubectl",
			handler: map[string]http.HandlerFunc{
				binary + ".sha256": func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, "http://stranger.example/kubectl", http.StatusFound)
				},
			},
			wantErr: "refusing to be redirected to stranger.example",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mux := http.NewServeMux()
			for path, handler := range test.handler {
				mux.HandleFunc(path, handler)
			}
			f, _ := testFetcher(t, mux)
			version := map[string]string{"kubectl": "v1.37.1", "etcd": "v3.7.0"}[test.tool]
			from, published := f.locate(toolNamed(t, test.tool), version)
			if !published {
				t.Fatal("not published")
			}
			dest := filepath.Join(t.TempDir(), test.tool)
			checkFetched(t, dest, f.fetch(t.Context(), from, dest, quietStep(t)), test.wantErr)
		})
	}
}

// checkFetched checks that there is either the program, or the error and no file.
func checkFetched(t *testing.T, dest string, err error, wantErr string) {
	t.Helper()
	if wantErr != "" {
		if err == nil || !strings.Contains(err.Error(), wantErr) {
			t.Errorf("got error %v, want one with %q", err, wantErr)
		}
		if left, _ := os.ReadDir(filepath.Dir(dest)); len(left) > 0 {
			t.Errorf("a failed download left the files %v", left)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(dest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(program, string(got)); diff != "" {
		t.Errorf("program (-want +got):\n%s", diff)
	}
	if left, _ := os.ReadDir(filepath.Dir(dest)); len(left) != 1 {
		t.Errorf("there are more files than the program: %v", left)
	}
}

func toolNamed(t *testing.T, name string) tool {
	t.Helper()
	for _, candidate := range tools {
		if candidate.name == name {
			return candidate
		}
	}
	t.Fatalf("no tool %s", name)
	return tool{}
}

func TestFetchTimesOut(t *testing.T) {
	t.Parallel()
	hang := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "a")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	const short, long = 100 * time.Millisecond, time.Minute // An answer that does come may take long.
	tests := map[string]struct {
		sums, body               http.HandlerFunc
		answerWithin, stallAfter time.Duration
		wantErr                  error
	}{
		"in the checksum": {hang, text(program), short, long, context.DeadlineExceeded},
		"in the program":  {text(sum(program)), hang, long, short, errStalled},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := testFetcher(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, ".sha256") {
					test.sums(w, r)
					return
				}
				test.body(w, r)
			}))
			f.answerWithin, f.stallAfter = test.answerWithin, test.stallAfter
			from, _ := f.locate(toolNamed(t, "kubectl"), "v1.37.1")
			err := f.fetch(t.Context(), from, filepath.Join(t.TempDir(), "kubectl"), quietStep(t))
			if !errors.Is(err, test.wantErr) {
				t.Errorf("got %v, want %v", err, test.wantErr)
			}
		})
	}
}

func TestUnreachableSiteIsUsedOnce(t *testing.T) {
	t.Parallel()
	f, server := testFetcher(t, http.NotFoundHandler())
	server.Close()
	from, published := f.locate(toolNamed(t, "kubectl"), "v1.37.1")
	if !published {
		t.Fatal("not published before the site was tried")
	}
	if err := f.fetch(t.Context(), from, filepath.Join(t.TempDir(), "kubectl"), quietStep(t)); err == nil {
		t.Fatal("a closed server responded")
	}
	if _, published := f.locate(toolNamed(t, "kube-apiserver"), "v1.37.1"); published {
		t.Error("a site that did not respond would be used again")
	}
}

func TestMissingReleaseDoesNotDisableItsSite(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	f, _ := testFetcher(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.NotFound(w, r)
	}))
	for _, name := range []string{"kubectl", "kube-apiserver"} {
		from, published := f.locate(toolNamed(t, name), "v1.37.1")
		if !published {
			t.Fatalf("%s would not be requested", name)
		}
		if err := f.fetch(t.Context(), from, filepath.Join(t.TempDir(), name), quietStep(t)); err == nil {
			t.Fatal("a 404 response was accepted as a program")
		}
	}
	if requests.Load() != 2 {
		t.Errorf("%d requests, want 2", requests.Load())
	}
}

func TestLocate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		tool, goos, goarch, version string
		want                        release // zero: not published
	}{
		"server on Linux": {"kube-apiserver", "linux", "arm64", "v1.37.1", release{
			url:  "https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kube-apiserver",
			sums: "https://dl.k8s.io/release/v1.37.1/bin/linux/arm64/kube-apiserver.sha256",
		}},
		"server on macOS": {"kube-apiserver", "darwin", "arm64", "v1.37.1", release{}},
		"kubectl on macOS": {"kubectl", "darwin", "arm64", "v1.37.1", release{
			url:  "https://dl.k8s.io/release/v1.37.1/bin/darwin/arm64/kubectl",
			sums: "https://dl.k8s.io/release/v1.37.1/bin/darwin/arm64/kubectl.sha256",
		}},
		"etcd on Linux": {"etcd", "linux", "amd64", "v3.7.0", release{
			url:    "https://github.com/etcd-io/etcd/releases/download/v3.7.0/etcd-v3.7.0-linux-amd64.tar.gz",
			sums:   "https://github.com/etcd-io/etcd/releases/download/v3.7.0/SHA256SUMS",
			member: "etcd-v3.7.0-linux-amd64/etcd",
		}},
		"etcd on macOS":                   {"etcd", "darwin", "amd64", "v3.7.0", release{}},
		"kwok, which has no checksums":    {"kwok", "linux", "amd64", "v0.8.0", release{}},
		"kwokctl, which has no checksums": {"kwokctl", "linux", "amd64", "v0.8.0", release{}},
		"controller manager on Windows":   {"kube-controller-manager", "windows", "amd64", "v1.37.1", release{}},
		"scheduler on an exotic Linux port": {"kube-scheduler", "linux", "riscv64", "v1.37.1", release{
			url:  "https://dl.k8s.io/release/v1.37.1/bin/linux/riscv64/kube-scheduler",
			sums: "https://dl.k8s.io/release/v1.37.1/bin/linux/riscv64/kube-scheduler.sha256",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFetcher(officialSites)
			f.goos, f.goarch = test.goos, test.goarch
			got, published := f.locate(toolNamed(t, test.tool), test.version)
			if published != (test.want != release{}) {
				t.Errorf("published: %v", published)
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestCheckRedirect(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		to   string
		want bool
	}{
		"the site":                 {"https://dl.k8s.io/x", true},
		"the site's CDN":           {"https://cdn.dl.k8s.io/x", true},
		"GitHub's file store":      {"https://release-assets.githubusercontent.com/x", true},
		"a name with the same end": {"https://evilk8s.io/x", false},
		"an unknown host":          {"https://example.com/dl.k8s.io", false},
		"the site without TLS":     {"http://dl.k8s.io/x", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := httptest.NewRequest(http.MethodGet, "https://dl.k8s.io/first", nil)
			next := httptest.NewRequest(http.MethodGet, test.to, nil)
			err := officialSites.checkRedirect(next, []*http.Request{first})
			if (err == nil) != test.want {
				t.Errorf("got %v, want allowed: %v", err, test.want)
			}
		})
	}
}

func TestFindChecksum(t *testing.T) {
	t.Parallel()
	a, b := sum("a"), sum("b")
	tests := map[string]struct {
		sums string
		want string // empty: an error
	}{
		"bare":                        {a, a},
		"bare, with a newline":        {a + "\n", a},
		"listed":                      {b + "  other\n" + a + "  file\n", a},
		"listed as a binary":          {a + " *file\n", a},
		"only for another file":       {b + "  file.sig\n", ""},
		"a checksum of another kind":  {strings.Repeat("0", 128), ""},
		"upper case is not published": {strings.ToUpper(a), ""},
		"empty":                       {"", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := findChecksum(test.sums, "file")
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("got %q and %v, want %q", got, err, test.want)
			}
		})
	}
}
