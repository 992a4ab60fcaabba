// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real Kubernetes control plane on this machine, with
// simulated nodes, and nothing else: no container engine, no virtual machine.
//
// kwokctl starts etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and kwok as plain processes. kwok plays the kubelets: a pod
// that is scheduled is Running and Ready at once, whatever its image. What
// kwokctl does not look after is done here: processes that died or were
// forgotten, half-made clusters, commands that run at the same time.
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
	// DefaultName is the cluster of who does not name one.
	DefaultName = "modelbox"
	// NameEnv names the cluster, so that several can run at once.
	NameEnv = "CLUSTER"

	// startWithin bounds one attempt to start. A cluster needs about five
	// seconds; a machine that reads the programs from a slow disk, a minute.
	startWithin = 3 * time.Minute
	// startAttempts is more than one because somebody may take a port before
	// its process does, and because kube-controller-manager ends if the API
	// server takes longer than ten seconds; kwokctl does not restart it.
	startAttempts = 3
)

// components are the processes of a cluster, by the name of their executable
// in its bin folder and of their log.
var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok-controller"}

// nameRule keeps names usable in paths, contexts and messages.
var nameRule = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// Cluster is a local control plane, running or not.
type Cluster struct {
	// Name tells it from others on this machine.
	Name string
	// Kubeconfig is the file that Up writes and Down removes. Its one user may
	// do everything.
	Kubeconfig string

	// home is kwokctl's working directory, shared by all clusters.
	home   string
	report *progress.Reporter
}

// New describes the cluster of a given name. cache is the directory in which
// its files live, root the repository in whose bin folder its kubeconfig goes.
// It fails if name is not 1 to 40 characters of a to z, 0 to 9 and dashes.
func New(name, cache, root string, report *progress.Reporter) (*Cluster, error) {
	if !nameRule.MatchString(name) {
		return nil, fmt.Errorf("%q cannot name a cluster: use up to 40 of a-z, 0-9 and dashes within", name)
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

// Dir is where the cluster's files are.
func (c *Cluster) Dir() string { return filepath.Join(c.home, "clusters", c.Name) }

// AuditLog is the file in which the API server notes every request that it has
// answered, one JSON object (audit.k8s.io/v1 Event) a line.
func (c *Cluster) AuditLog() string { return filepath.Join(c.Dir(), "logs", "audit.log") }

// Log is the file with the output of a component.
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

// Up makes the cluster run: it creates one that is absent, restarts what has
// died of one that is there, and leaves a healthy one alone. When it returns,
// the kubeconfig is written, the nodes are Ready and pods can be created.
// programs is the directory with the control plane's executables, of which a
// cluster that exists keeps those that it was created with.
//
// The error of a failure holds the end of the log that tells most. A cluster
// that fails while it is created keeps its logs but no process; one whose
// creation is interrupted (by the end of ctx) is removed.
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

// giveUp leaves nothing running of a cluster that could not be created.
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

// attempt starts what does not run and waits until it works, or until a
// process ends that should not.
func (c *Cluster) attempt(ctx context.Context, programs string, creating bool) error {
	attempt, cancel := context.WithTimeoutCause(ctx, startWithin,
		fmt.Errorf("it does not work after %s", progress.Short(startWithin)))
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

// prepare removes what would mislead kwokctl. A cluster that is being created
// begins anew with each attempt, on other ports.
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

// start leaves a cluster alone if all of its processes live. Else it returns
// when it began to start some.
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
// A cluster that is not there is no error.
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
		c.report.Say("cluster %s is not there", c.Name)
	}
	return removeFile(c.Kubeconfig)
}

// lock excludes other commands for the same cluster.
func (c *Cluster) lock(ctx context.Context) (unlock func(), err error) {
	return lock.Acquire(ctx, filepath.Join(c.home, "locks", c.Name), func() {
		c.report.Say("waiting for another command that is starting or removing cluster %s", c.Name)
	})
}

// installed says whether kwokctl finished making the cluster's files, of which
// the kubeconfig comes last.
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

// clear removes the cluster, whatever its state: through kwokctl if that can
// be, and by hand what is left then.
func (c *Cluster) clear(ctx context.Context) error {
	if c.installed() {
		if err := c.delete(ctx); err != nil {
			c.report.Say("kwokctl could not remove it, so it is removed without: %v", err)
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
