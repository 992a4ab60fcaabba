// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package operator

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/hack/local/process"
	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
)

// server runs a shell script as one of the processes; its probes are answered
// by handler.
func server(t *testing.T, name, script string, handler http.HandlerFunc) *Server {
	t.Helper()
	probes := httptest.NewServer(handler)
	t.Cleanup(probes.Close)
	up := make(first)
	p, err := process.Start(process.Spec{
		Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Out: process.NewOutput(up, false),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(0) })
	<-up
	return &Server{Process: p, Probes: probes.URL}
}

// first is closed by the first write to it. A script writes when it is ready
// for signals; it writes once.
type first chan struct{}

func (f first) Write(p []byte) (int, error) {
	close(f)
	return len(p), nil
}

func notReady(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }

const (
	forever = `trap 'exit 0' TERM; echo up; while :; do sleep 0.02; done`
	fails   = `echo up; exit 7`
	ends    = `echo up`
)

func TestAwaitReady(t *testing.T) {
	t.Parallel()
	t.Run("when it says so", func(t *testing.T) {
		t.Parallel()
		var asked atomic.Int32
		s := server(t, "webhook", forever, func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) < 3 || r.URL.Path != "/readyz" {
				notReady(w, r)
			}
		})
		if err := s.awaitReady(t.Context()); err != nil || asked.Load() != 3 {
			t.Errorf("got %v after %d questions, want readiness at the third", err, asked.Load())
		}
	})
	t.Run("not when it has ended", func(t *testing.T) {
		t.Parallel()
		err := server(t, "webhook", fails, notReady).awaitReady(t.Context())
		if err == nil || err.Error() != "webhook ended: exit status 7" {
			t.Errorf("got %v, want its exit status", err)
		}
	})
	t.Run("not when it has ended well", func(t *testing.T) {
		t.Parallel()
		err := server(t, "webhook", ends, notReady).awaitReady(t.Context())
		if err == nil || !strings.Contains(err.Error(), "without being told to") {
			t.Errorf("got %v, want an error all the same", err)
		}
	})
	t.Run("not when it is interrupted", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		s := server(t, "webhook", forever, func(w http.ResponseWriter, r *http.Request) { cancel(); notReady(w, r) })
		if err := s.awaitReady(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	})
}

func TestDuring(t *testing.T) {
	t.Parallel()
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	ends := func(context.Context) error { return nil }
	waits := func(ctx context.Context) error {
		<-ctx.Done()
		return errors.New("the demo was ended")
	}
	tests := map[string]struct {
		ctx                 context.Context
		webhook, controller string // an empty script: it does not run
		do                  func(context.Context) error
		wantErr             string // empty: none
	}{
		"both run":                              {t.Context(), forever, forever, ends, ""},
		"an interruption":                       {interrupted, forever, forever, waits, "the demo was ended"},
		"the webhook's end":                     {t.Context(), fails, forever, waits, "webhook ended: exit status 7\nthe demo was ended"},
		"the controller's end":                  {t.Context(), forever, fails, waits, "controller ended: exit status 7\nthe demo was ended"},
		"the end of a controller alone":         {t.Context(), "", fails, waits, "controller ended: exit status 7\nthe demo was ended"},
		"an interruption of a controller alone": {interrupted, "", forever, waits, "the demo was ended"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			running := &Operator{Controller: server(t, "controller", test.controller, notReady)}
			if test.webhook != "" {
				running.Webhook = server(t, "webhook", test.webhook, notReady)
			}
			err := running.During(test.ctx, test.do)
			if (err == nil) != (test.wantErr == "") || err != nil && err.Error() != test.wantErr {
				t.Errorf("got %v, want %q", err, test.wantErr)
			}
			if err := running.Stop(); err != nil {
				t.Errorf("what had ended was reported again, or did not stop: %v", err)
			}
		})
	}
}

func TestStopOfNothing(t *testing.T) {
	t.Parallel()
	if err := (&Operator{}).Stop(); err != nil {
		t.Error(err)
	}
}

// flagsOf starts the controller as a script, and returns the flags and the KUBECONFIG that it got.
func flagsOf(t *testing.T, o Options) string {
	t.Helper()
	o.Root, o.Output, o.Report = t.TempDir(), process.NewOutput(io.Discard, false), progress.New(io.Discard, false)
	if err := os.MkdirAll(filepath.Join(o.Root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" \"KUBECONFIG=$KUBECONFIG\" > flags\nexit 7\n"
	if err := os.WriteFile(filepath.Join(o.Root, "bin", "controller"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := o.startController(t.Context()); err == nil {
		t.Fatal("a process that ended passes for ready")
	}
	flags, err := os.ReadFile(filepath.Join(o.Root, "flags"))
	if err != nil {
		t.Fatal(err)
	}
	return string(flags)
}

func TestServeGivesFlags(t *testing.T) {
	t.Parallel()
	flags := flagsOf(t, Options{Kubeconfig: "/the/kubeconfig", ControllerArgs: []string{"--workers=2"}})
	for _, want := range []string{
		"--kubeconfig=/the/kubeconfig\n", "--metrics-bind-address=127.0.0.1:", "--health-probe-bind-address=127.0.0.1:",
		"--leader-elect\n", "--leader-election-namespace=modelbox-system\n", "--workers=2\n",
	} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q is not among\n%s", want, flags)
		}
	}
}

// The current context may be another one when the process is started again.
func TestServeNamesTheContext(t *testing.T) {
	t.Parallel()
	flags := flagsOf(t, Options{Kubeconfig: "/a:/b", Context: "dev", LeaseNamespace: "team", ControllerArgs: []string{"--workers=2"}})
	for _, want := range []string{"--context=dev\n", "--leader-election-namespace=team\n", "--workers=2\n", "\nKUBECONFIG=/a:/b\n"} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q is not among\n%s", want, flags)
		}
	}
	if strings.Contains(flags, "--kubeconfig") {
		t.Errorf("one of several files is selected by\n%s", flags)
	}
}

func TestBuildSaysWhatFailed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.com/broken\n", "controller/main.go": "package main\n\nfunc main() { undefined() }\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := Options{Root: root, Report: progress.New(io.Discard, false)}.build(t.Context())
	if err == nil || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("got %v, want the compiler's words", err)
	}
}
