// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator builds the operator's two processes and runs them on this
// machine against a local cluster, in the order in which they depend on each
// other.
package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
	"github.com/modelbox-operator/modelbox-operator/hack/local/install"
	"github.com/modelbox-operator/modelbox-operator/hack/local/process"
	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
)

const (
	// readyWithin bounds the start of a process, endWithin its end. The latter
	// is longer than the processes' own time to drain.
	readyWithin = time.Minute
	endWithin   = 45 * time.Second
)

// Options say what to run, and where.
type Options struct {
	// Root is the repository.
	Root string
	// Kubeconfig and Config are the cluster, as a file and as read from it.
	Kubeconfig string
	Config     *rest.Config
	// Context is the context in Kubeconfig, which then may be several files, separated as in
	// $KUBECONFIG. If it is empty, it is the current context of the one file.
	Context string
	// Kubectl is the executable that builds kustomizations. It is not used for a shared
	// cluster.
	Kubectl string
	// Shared says that others may use the cluster. Nothing is installed then but what is
	// removed at the end, not where an operator is deployed, and the webhook only if the API
	// server reaches it.
	Shared bool
	// Describe names the cluster for messages, and Command is the beginning of a kubectl
	// command for it.
	Describe, Command string
	// LeaseNamespace is the namespace of the controller's lease, which must exist in a shared
	// cluster. If it is empty, it is the operator's own.
	LeaseNamespace string
	// Certs is the directory for the webhook's certificate.
	Certs string
	// Webhooks says whether the webhook process runs and is called.
	Webhooks bool
	// WebhookArgs and ControllerArgs are added to the processes' flags.
	WebhookArgs, ControllerArgs []string
	// Output gets what the processes write.
	Output *process.Output
	// Report tells what takes long.
	Report *progress.Reporter
}

// Operator is the two processes, running.
type Operator struct {
	// Webhook is nil if the webhook process is disabled.
	Webhook, Controller *Server

	// run has installed what Stop removes. It is nil in a process of tests.
	run *install.Run
	// removal is the command that removes it after a kill.
	removal string
}

// Server is one of the processes.
type Server struct {
	*process.Process
	// Metrics and Probes are base URLs, such as http://127.0.0.1:8080.
	Metrics, Probes string

	// spec starts the process again, with the addresses that it had.
	spec process.Spec
}

// Start builds and installs everything and returns when both processes are
// ready. If it fails, none of them is left running.
func Start(ctx context.Context, o Options) (*Operator, error) {
	c, err := client.New(o.Config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	manifests, err := o.load(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.refuseBesideDeployed(ctx, c, manifests); err != nil {
		return nil, err
	}
	if err := o.build(ctx); err != nil {
		return nil, err
	}
	if err := o.install(ctx, c, manifests); err != nil {
		return nil, err
	}
	running := &Operator{run: install.NewRun(c), removal: o.removal()}
	if err := running.start(ctx, o, manifests); err != nil {
		return nil, errors.Join(err, running.Stop())
	}
	return running, nil
}

func (r *Operator) start(ctx context.Context, o Options, m manifests) (err error) {
	if o.Webhooks || o.Shared {
		o.Report.Say("What this run installs in the cluster is removed when it stops. If it is killed, this command removes it:\n  %s", r.removal)
	}
	if o.Webhooks {
		if r.Webhook, err = r.startWebhook(ctx, o, m); err != nil {
			return err
		}
	}
	if o.Shared {
		if err := r.run.Policies(ctx, m.policies); err != nil {
			return err
		}
	}
	r.Controller, err = o.startController(ctx)
	return err
}

// build compiles both processes into bin.
func (o Options) build(ctx context.Context) error {
	packages := []string{"./controller"}
	if o.Webhooks {
		packages = append(packages, "./webhook")
	}
	step := o.Report.Start("building %s", strings.Join(packages, " and "))
	defer step.Fail()
	// With a folder as its output, the Go tool names each program itself.
	// Other flags would compile the many packages again that "go run" has
	// compiled for this program already.
	args := append([]string{"build", "-o", "bin" + string(filepath.Separator)}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = o.Root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building: %w\n%s", err, out)
	}
	step.Done()
	return nil
}

func (o Options) startController(ctx context.Context) (*Server, error) {
	args := []string{"--leader-elect", "--leader-election-namespace=" + cmp.Or(o.LeaseNamespace, install.Namespace)}
	if o.Context == "" {
		return o.serve(ctx, "controller", append(append(args, "--kubeconfig="+o.Kubeconfig), o.ControllerArgs...))
	}
	// --kubeconfig has one file only. The name of the context selects the same cluster when the
	// process is started again, although the current context may be another one by then.
	return o.serve(ctx, "controller", append(append(args, "--context="+o.Context), o.ControllerArgs...),
		clientcmd.RecommendedConfigPathEnvVar+"="+o.Kubeconfig)
}

// serve starts a process with the flags that both have, and env added to its environment,
// and waits until it says that it is ready. It returns a process that started but is not ready too.
func (o Options) serve(ctx context.Context, name string, args []string, env ...string) (*Server, error) {
	addresses, err := freeport.Addresses(2)
	if err != nil {
		return nil, err
	}
	metrics, probes := addresses[0], addresses[1]
	// Not as a step: its line would be rewritten in the middle of the output.
	o.Report.Say("starting the %s", name)
	spec := process.Spec{
		Name: name,
		Path: filepath.Join(o.Root, "bin", name),
		Args: append([]string{
			"--metrics-bind-address=" + metrics,
			"--health-probe-bind-address=" + probes,
			"--zap-encoder=console",
			"--zap-time-encoding=rfc3339",
		}, args...),
		Env: env,
		Dir: o.Root,
		Out: o.Output,
	}
	started, err := process.Start(spec)
	if err != nil {
		return nil, err
	}
	server := &Server{Process: started, Metrics: "http://" + metrics, Probes: "http://" + probes, spec: spec}
	return server, server.awaitReady(ctx)
}

// Stop ends the processes that run, the controller first, so that what it
// still writes is admitted. It removes what Start has installed in the cluster for as long as
// they run, before the webhook ends, so that the API server refuses no object because of its end.
func (r *Operator) Stop() error {
	var errs []error
	if r.Controller != nil {
		errs = append(errs, r.Controller.stop())
	}
	errs = append(errs, r.uninstall())
	if r.Webhook != nil {
		errs = append(errs, r.Webhook.stop())
	}
	return errors.Join(errs...)
}

// uninstall removes what Start has installed. An interruption does not end the removal.
func (r *Operator) uninstall() error {
	if r.run == nil {
		return nil
	}
	if err := r.run.Remove(context.Background()); err != nil {
		return fmt.Errorf("removing what this run has installed: %w\nThis command removes it:\n  %s", err, r.removal)
	}
	return nil
}

// servers are the processes that run.
func (r *Operator) servers() []*Server {
	return slices.DeleteFunc([]*Server{r.Controller, r.Webhook}, func(s *Server) bool { return s == nil })
}
