// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCommandsOfProc(t *testing.T) {
	t.Parallel()
	proc := t.TempDir()
	put(t, filepath.Join(proc, "17", "cmdline"), "/bin/etcd\x00--name=node0\x00")
	put(t, filepath.Join(proc, "18", "cmdline"), "") // a zombie, or a kernel thread
	put(t, filepath.Join(proc, "self", "cmdline"), "ignored")
	put(t, filepath.Join(proc, "uptime"), "1 1")
	if err := os.Mkdir(filepath.Join(proc, "19"), 0o700); err != nil { // has ended
		t.Fatal(err)
	}
	got, err := commandsOfProc(proc)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int]string{17: "/bin/etcd --name=node0"}, got); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestCommandsOfPS(t *testing.T) {
	t.Parallel()
	out := "    1 Ss   /sbin/launchd\n  412 S+   /Users/me/my cluster/bin/etcd --name=node0\n  413 Z    (kwok)\nnonsense\n"
	want := map[int]string{1: "/sbin/launchd", 412: "/Users/me/my cluster/bin/etcd --name=node0"}
	if diff := cmp.Diff(want, commandsOfPS(out)); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

// startComponent runs a process that looks like a component of the cluster.
func startComponent(t *testing.T, c *Cluster, component string) *exec.Cmd {
	t.Helper()
	bin := filepath.Join(c.Dir(), "bin", component)
	if err := os.MkdirAll(filepath.Dir(bin), 0o700); err != nil {
		t.Fatal(err)
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sleep, bin); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	// A process has its command line a moment after it has begun.
	for deadline := time.Now().Add(20 * time.Second); ; {
		live, err := c.processes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if live[component] == cmd.Process.Pid {
			return cmd
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not among the processes %v", component, live)
		}
		runtime.Gosched()
	}
}

func TestProcessesOfOtherClustersAreIgnored(t *testing.T) {
	t.Parallel()
	c, other := newCluster(t, "a"), newCluster(t, "b")
	other.home = c.home
	etcd := startComponent(t, c, "etcd")
	startComponent(t, other, "etcd")

	live, err := c.processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"etcd": etcd.Process.Pid}, live); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
}

// A zombie still accepts signals, so kwokctl considers it to be running.
func TestZombieIsDead(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	etcd := startComponent(t, c, "etcd")
	put(t, c.pidFile("etcd"), strconv.Itoa(etcd.Process.Pid))
	if err := etcd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		dead, err := c.dead(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if cmp.Equal(dead, []string{"etcd"}) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("dead: %v, want etcd", dead)
		}
	}
}

func TestForgetDead(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	etcd := startComponent(t, c, "etcd")
	put(t, c.pidFile("etcd"), strconv.Itoa(etcd.Process.Pid))
	// This process does not belong to the cluster.
	put(t, c.pidFile("kube-apiserver"), strconv.Itoa(os.Getpid()))
	put(t, c.pidFile("kube-scheduler"), "")

	if err := c.forgetDead(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"etcd": etcd.Process.Pid}, c.recorded()); diff != "" {
		t.Errorf("pid files (-want +got):\n%s", diff)
	}
}

func TestEndProcesses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	cmd := startComponent(t, c, "kwok-controller")
	if err := c.endProcesses(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it ended with exit status 0")
	}
	if err := c.endProcesses(t.Context()); err != nil {
		t.Errorf("with nothing to end: %v", err)
	}
}

func TestCheckRunningNamesTheComponent(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	for _, component := range components[:2] {
		startComponent(t, c, component)
	}
	err := c.checkRunning(t.Context())
	died, ok := errors.AsType[*diedError](err)
	if !ok || died.component != components[2] {
		t.Errorf("got %v, want %s", err, components[2])
	}
}

func TestWatchAborts(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	etcd := startComponent(t, c, "etcd")
	put(t, c.pidFile("etcd"), strconv.Itoa(etcd.Process.Pid))
	ctx, abort := context.WithCancelCause(t.Context())
	defer abort(nil)
	go c.watch(ctx, abort)
	if err := etcd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("watch did not abort")
	}
	if died, ok := errors.AsType[*diedError](context.Cause(ctx)); !ok || died.component != "etcd" {
		t.Errorf("got %v, want that etcd died", context.Cause(ctx))
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "a")
	put(t, c.Log("etcd"), "address already in use\n")
	put(t, c.Log("kube-apiserver"), "no etcd\n")
	tests := map[string]struct {
		err  error
		want []string
	}{
		"the log of the component": {&diedError{"etcd"}, []string{"etcd ended unexpectedly", "etcd.log:\n  address already in use\n"}},
		"the API server's log":     {errors.New("slow"), []string{"slow", "kube-apiserver.log:\n  no etcd\n"}},
		"no log":                   {&diedError{"kube-scheduler"}, []string{"kube-scheduler.log:\n  (open "}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := c.explain(test.err)
			if !errors.Is(got, test.err) {
				t.Error("the cause is lost")
			}
			for _, want := range append(test.want, "CLUSTER=a go run ./hack/local down") {
				if !strings.Contains(got.Error(), want) {
					t.Errorf("got %q, without %q", got, want)
				}
			}
		})
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	var content strings.Builder
	for i := range 10_000 {
		content.WriteString(strconv.Itoa(i) + strings.Repeat("x", 300) + "\n")
	}
	put(t, path, content.String())
	lines := strings.Split(strings.TrimRight(tail(path), "\n"), "\n")
	if len(lines) != tailLines || !strings.HasPrefix(lines[tailLines-1], "  9999x") {
		t.Errorf("got %d lines, the last of which is %q", len(lines), lines[len(lines)-1])
	}
	if len(lines[0]) > tailWidth+2 {
		t.Errorf("a line of %d bytes", len(lines[0]))
	}
}
