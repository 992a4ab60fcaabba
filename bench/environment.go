// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// programs are what is measured: the packages, and the directories of their modules.
var programs = map[string][2]string{
	"ours": {".", "./controller"}, "webhook": {".", "./webhook"}, "raw": {"bench", "./raw"}, "plain": {"bench", "./plain"},
}

func binary(name string) string { return filepath.Join(testenv.Root(), "bin", "bench", name) }

// build builds the programs with the flags of the operator's images.
func build(ctx context.Context) error {
	for name, from := range programs {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary(name), from[1])
		cmd.Dir, cmd.Env = filepath.Join(testenv.Root(), from[0]), append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// controlPlane is an etcd and a kube-apiserver of their own, without controllers.
type controlPlane struct {
	client.WithWatch
	kubeconfig string
	server     []int // The process IDs.
	env        *envtest.Environment
}

// start starts a control plane with the operator's CRDs and the namespaces of the objects.
func start(ctx context.Context) (*controlPlane, error) {
	p := &controlPlane{env: &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join(testenv.Root(), "config", "crd", "bases")}, ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 2 * time.Minute,
	}}
	// envtest's own range has room for 254 Services.
	p.env.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.96.0.0/12")
	config, err := p.env.Start()
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	config.QPS = -1
	scheme, err := testenv.Scheme()
	if err == nil {
		p.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	}
	if err == nil {
		p.kubeconfig = filepath.Join(p.env.ControlPlane.GetAPIServer().CertDir, "bench.kubeconfig")
		err = os.WriteFile(p.kubeconfig, p.env.KubeConfig, 0o600)
	}
	for _, name := range []string{modelboxes.Namespace, noisyNamespace} {
		if err == nil {
			err = p.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	if err == nil {
		p.server, err = children("kube-apiserver", "etcd")
	}
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, idle(ctx, p.server)
}

func (p *controlPlane) stop() { _ = p.env.Stop() } // The directory is a temporary one.

// process is a running program that is measured.
type process struct {
	*exec.Cmd
	name, metrics string
	log           bytes.Buffer
	ended         chan struct{}
}

// run starts a program on a control plane. It must not outlive this process.
func (p *controlPlane) run(name string) (*process, error) {
	metrics, err := freeAddress()
	if err != nil {
		return nil, err
	}
	started := &process{name: name, metrics: metrics, ended: make(chan struct{}), Cmd: exec.Command(binary(name), "--kubeconfig="+p.kubeconfig)}
	switch name {
	case "ours": // With one replica, the lease would only add requests that the others do not make.
		started.Args = append(started.Args, "--leader-elect=false", "--metrics-bind-address="+metrics, "--health-probe-bind-address=0")
	case "plain":
		started.Args = append(started.Args, "--metrics-bind-address="+metrics)
	}
	started.Stdout, started.Stderr = nil, &started.log
	started.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := started.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = started.Wait() // The log has the reason.
		close(started.ended)
	}()
	return started, nil
}

func (p *process) stop() {
	_ = p.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(10*time.Second, func() { _ = p.Process.Kill() })
	<-p.ended
	timer.Stop()
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// requests are those that a process has made, by method and by code, from its own metrics.
type requests struct{ reads, writes, conflicts float64 }

var requestSeries = regexp.MustCompile(`^rest_client_requests_total\{code="(\d+)".*method="([A-Z]+)"\} ([0-9.e+]+)$`)

func (p *process) requests(ctx context.Context) (requests, error) {
	var out requests
	if p.name == "raw" {
		return out, nil // It has no metrics; its requests are known.
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.metrics+"/metrics", nil)
	if err != nil {
		return out, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return out, fmt.Errorf("%w; the log of %s:\n%s", err, p.name, p.log.String())
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		found := requestSeries.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		n, err := strconv.ParseFloat(found[3], 64)
		if err != nil {
			return out, err
		}
		if found[2] == http.MethodGet {
			out.reads += n
			continue
		}
		out.writes += n
		if found[1] == "409" {
			out.conflicts += n
		}
	}
	return out, lines.Err()
}

// cpu returns the CPU time of processes (utime and stime, proc_pid_stat(5)), in units of 10 ms.
func cpu(pids ...int) (time.Duration, error) {
	var ticks int64
	for _, pid := range pids {
		fields, err := stat(pid)
		if err != nil {
			return 0, err
		}
		for _, field := range fields[11:13] {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, err
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// stat returns the fields of /proc/PID/stat after the name, which may have spaces.
func stat(pid int) ([]string, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(line[bytes.LastIndexByte(line, ')')+1:]))
	if len(fields) < 13 {
		return nil, fmt.Errorf("/proc/%d/stat does not have the fields of proc_pid_stat(5)", pid)
	}
	return fields, nil
}

// resident returns the resident memory of a process (VmRSS) in MiB.
func resident(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`).FindSubmatch(text)
	if found == nil {
		return 0, errors.New("there is no VmRSS")
	}
	kilobytes, err := strconv.ParseFloat(string(found[1]), 64)
	return kilobytes / 1024, err
}

// idle waits until processes use at most 50 ms of CPU time in a second, but for at most half a
// minute: on a busy machine an inexact result is better than none.
func idle(ctx context.Context, pids []int) error {
	before, err := cpu(pids...)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, time.Second, 30*time.Second, false, func(context.Context) (bool, error) {
		now, err := cpu(pids...)
		quiet := now-before <= 50*time.Millisecond
		before = now
		return quiet, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil
	}
	return err
}

// children finds the youngest child processes of this process by the names of their programs.
func children(names ...string) ([]int, error) {
	var out []int
	entries, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		found := 0
		for _, entry := range entries {
			comm, err := os.ReadFile(entry)
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(entry))) // The pattern has only digits.
			if err != nil || strings.TrimSpace(string(comm)) != name {
				continue // It may have ended since.
			}
			if fields, err := stat(pid); err == nil && fields[1] == strconv.Itoa(os.Getpid()) && fields[0] != "Z" {
				found = max(found, pid)
			}
		}
		if found == 0 {
			return nil, fmt.Errorf("this process has no child process %q", name)
		}
		out = append(out, found)
	}
	return out, nil
}
