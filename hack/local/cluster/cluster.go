// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real Kubernetes control plane on this machine, with
// simulated nodes, and nothing else: no container engine, no virtual machine.
//
// kwokctl starts etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and kwok as processes. kwok simulates the kubelets: a pod
// that is scheduled is Running and Ready immediately, with any image. This package
// handles what kwokctl does not: processes that have died, processes without a pid file,
// incomplete clusters, and commands that run at the same time.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/modelbox-operator/modelbox-operator/hack/local/lock"
	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
)

const (
	// DefaultName is the name of the cluster if NameEnv is not set.
	DefaultName = "modelbox"
	// NameEnv names the cluster, so that several can run at the same time.
	NameEnv = "CLUSTER"

	// startWithin is the timeout of one attempt to start. A cluster needs about five
	// seconds, or a minute if the programs are on a slow disk.
	startWithin = 3 * time.Minute
	// startAttempts is more than one because another process may take a port first, and
	// because kube-controller-manager ends if the API server takes longer than ten
	// seconds; kwokctl does not restart it.
	startAttempts = 3
)

// components are the processes of a cluster. The names are those of the executables in
// its bin folder, and of the logs.
var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"}

// nameRule allows names that are valid in paths and contexts.
var nameRule = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// Cluster is a local control plane, running or not.
type Cluster struct {
	// Name identifies the cluster on this machine.
	Name string
	// Kubeconfig is the file that Up writes and Down removes. Its user is an
	// administrator.
	Kubeconfig string

	// home is kwokctl's working directory, shared by all clusters.
	home   string
	report *progress.Reporter
}

// New returns the cluster with a name. cache is the directory of its files, and root is
// the repository, whose bin folder contains its kubeconfig.
// It fails if name is not 1 to 40 characters of a to z, 0 to 9 and dashes.
func New(name, cache, root string, report *progress.Reporter) (*Cluster, error) {
	if !nameRule.MatchString(name) {
		return nil, fmt.Errorf("%q is not a valid cluster name: use up to 40 characters of a-z, 0-9 and dashes, with no dash at the start or the end", name)
	}
	kubeconfig := "kubeconfig"
	if name != DefaultName {
		kubeconfig += "-" + name
	}
	return &Cluster{
		Name:       name,
		Kubeconfig: filepath.Join(root, "bin", kubeconfig),
		home:       filepath.Join(cache, "kwok"),
		report:     report,
	}, nil
}

// Dir returns the directory of the cluster's files.
func (c *Cluster) Dir() string { return filepath.Join(c.home, "clusters", c.Name) }

// AuditLog returns the file in which the API server logs every request after its
// response, with one JSON object (audit.k8s.io/v1 Event) for each line.
func (c *Cluster) AuditLog() string { return filepath.Join(c.Dir(), "logs", "audit.log") }

// Log returns the file with the output of a component.
func (c *Cluster) Log(component string) string {
	return filepath.Join(c.Dir(), "logs", component+".log")
}

// Config returns the credentials of the cluster's administrator. It fails if
// Up has not written them.
func (c *Cluster) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	return config, nil
}

// Up makes the cluster run: it creates the cluster if it does not exist, restarts
// processes that have ended, and does nothing if all processes run. When it returns,
// the kubeconfig is written, the nodes are Ready and pods can be created.
// programs is the directory with the control plane's executables. An existing cluster
// keeps the executables that it was created with.
//
// An error contains the end of the relevant log. If the creation of a cluster fails, its
// logs are kept but no process is left; if it is interrupted (by the end of ctx), the
// cluster is removed.
func (c *Cluster) Up(ctx context.Context, programs string) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()

	creating := !c.installed()
	if from := c.creator(programs); from != programs {
		c.report.Say("cluster %s keeps the programs that it was created with, in %s; remove it (down) to change them", c.Name, from)
	}
	step := c.report.Start("starting cluster %s", c.Name)
	defer step.Fail()
	err = c.up(ctx, programs, creating)
	if err == nil {
		step.Done()
		return nil
	}
	if creating {
		err = errors.Join(err, c.giveUp(ctx))
	}
	return fmt.Errorf("starting cluster %s: %w", c.Name, err)
}

// giveUp ends all processes of a cluster that could not be created.
func (c *Cluster) giveUp(ctx context.Context) error {
	interrupted := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx)
	if interrupted {
		return c.clear(ctx)
	}
	return c.endProcesses(ctx)
}

func (c *Cluster) up(ctx context.Context, programs string, creating bool) error {
	var err error
	for range startAttempts {
		err = c.attempt(ctx, programs, creating)
		if _, died := errors.AsType[*diedError](err); !died {
			break
		}
	}
	if err != nil && ctx.Err() == nil {
		return c.explain(err)
	}
	return err
}

// attempt starts the processes that do not run, and waits until the cluster works or
// until a process ends unexpectedly.
func (c *Cluster) attempt(ctx context.Context, programs string, creating bool) error {
	attempt, cancel := context.WithTimeoutCause(ctx, startWithin,
		fmt.Errorf("it is not ready after %s", progress.Short(startWithin)))
	defer cancel()
	attempt, abort := context.WithCancelCause(attempt)
	defer abort(nil)

	if err := c.prepare(attempt, creating); err != nil {
		return err
	}
	go c.watch(attempt, abort)
	err := c.startAndSettle(attempt, programs)
	cause := context.Cause(attempt)
	switch _, died := errors.AsType[*diedError](cause); {
	case err == nil || cause == nil:
		return err
	case died || ctx.Err() != nil:
		return cause
	default:
		return fmt.Errorf("%w: %w", cause, err)
	}
}

// prepare removes files with outdated information for kwokctl. For a new cluster it
// removes everything, so that each attempt uses other ports.
func (c *Cluster) prepare(ctx context.Context, creating bool) error {
	if creating {
		return c.clear(ctx)
	}
	return c.forgetDead(ctx)
}

func (c *Cluster) startAndSettle(ctx context.Context, programs string) error {
	started, err := c.start(ctx, programs)
	if err != nil {
		return err
	}
	if err := c.writeKubeconfig(); err != nil {
		return err
	}
	if err := c.settle(ctx, started); err != nil {
		return err
	}
	return c.checkRunning(ctx)
}

// start starts the processes that do not run, and returns when it began. It does nothing
// and returns the zero time if all processes run.
func (c *Cluster) start(ctx context.Context, programs string) (began time.Time, err error) {
	if !c.installed() {
		return time.Now(), c.create(ctx, programs)
	}
	if c.checkRunning(ctx) == nil {
		return time.Time{}, nil
	}
	return time.Now(), c.kwokctl(ctx, c.creator(programs), "start", "cluster")
}

// Down ends the cluster's processes and removes its files and its kubeconfig.
// It is not an error if the cluster does not exist.
func (c *Cluster) Down(ctx context.Context) error {
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()

	there, err := c.exists(ctx)
	if err != nil {
		return err
	}
	if there {
		step := c.report.Start("removing cluster %s", c.Name)
		defer step.Fail()
		if err := c.clear(ctx); err != nil {
			return fmt.Errorf("removing cluster %s: %w", c.Name, err)
		}
		step.Done()
	} else {
		c.report.Say("cluster %s does not exist", c.Name)
	}
	return removeFile(c.Kubeconfig)
}

// lock excludes other commands for the same cluster.
func (c *Cluster) lock(ctx context.Context) (unlock func(), err error) {
	return lock.Acquire(ctx, filepath.Join(c.home, "locks", c.Name), func() {
		c.report.Say("waiting for another command that is starting or removing cluster %s", c.Name)
	})
}

// installed reports whether kwokctl has created all files of the cluster. The kubeconfig
// is the last one.
func (c *Cluster) installed() bool {
	for _, name := range []string{"kwok.yaml", "kubeconfig.yaml"} {
		if _, err := os.Stat(filepath.Join(c.Dir(), name)); err != nil {
			return false
		}
	}
	return true
}

func (c *Cluster) exists(ctx context.Context) (bool, error) {
	if _, err := os.Stat(c.Dir()); err == nil {
		return true, nil
	}
	live, err := c.processes(ctx)
	return len(live) > 0, err
}

// clear removes the cluster in any state: with kwokctl if possible, and then everything
// that is left.
func (c *Cluster) clear(ctx context.Context) error {
	if c.installed() {
		if err := c.delete(ctx); err != nil {
			c.report.Say("kwokctl could not remove it, so it is removed without kwokctl: %v", err)
		}
	}
	if err := c.endProcesses(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(c.Dir()); err != nil {
		return fmt.Errorf("removing its files: %w", err)
	}
	return nil
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	return nil
}
