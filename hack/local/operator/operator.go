// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator builds the operator's two processes and runs them on this
// machine against a local cluster, in the order in which they depend on each
// other.
package operator

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
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
	// Kubectl is the executable that builds kustomizations.
	Kubectl string
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
	if err := o.build(ctx); err != nil {
		return nil, err
	}
	configurations, err := o.install(ctx, c)
	if err != nil {
		return nil, err
	}
	running := &Operator{}
	if err := running.start(ctx, o, c, configurations); err != nil {
		return nil, errors.Join(err, running.Stop())
	}
	return running, nil
}

func (r *Operator) start(ctx context.Context, o Options, c client.Client, configurations []*unstructured.Unstructured) (err error) {
	if o.Webhooks {
		if r.Webhook, err = o.startWebhook(ctx, c, configurations); err != nil {
			return err
		}
	} else if err := install.RemoveWebhooks(ctx, c, configurations); err != nil {
		return err
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

// install puts CRDs, the policies and the namespace in, and returns the webhook
// configurations, which have to wait for the process.
func (o Options) install(ctx context.Context, c client.Client) ([]*unstructured.Unstructured, error) {
	step := o.Report.Start("installing CRDs and policies")
	defer step.Fail()
	crds, err := install.Load(ctx, o.Kubectl, filepath.Join(o.Root, "config", "crd"))
	if err != nil {
		return nil, err
	}
	if err := install.CRDs(ctx, c, crds); err != nil {
		return nil, err
	}
	policies, err := install.Load(ctx, o.Kubectl, filepath.Join(o.Root, "config", "rights"))
	if err != nil {
		return nil, err
	}
	if err := install.Policies(ctx, c, policies); err != nil {
		return nil, err
	}
	if err := install.NamespaceExists(ctx, c); err != nil {
		return nil, err
	}
	configurations, err := install.Load(ctx, o.Kubectl, filepath.Join(o.Root, "config", "webhook"))
	if err != nil {
		return nil, err
	}
	step.Done()
	return configurations, nil
}

func (o Options) startWebhook(ctx context.Context, c client.Client, configurations []*unstructured.Unstructured) (*Server, error) {
	caBundle, err := install.Certificates(o.Certs)
	if err != nil {
		return nil, err
	}
	addresses, err := freeport.Addresses(1)
	if err != nil {
		return nil, err
	}
	address := addresses[0]
	// No endpoints have to move elsewhere before this process may end.
	args := append([]string{"--cert-dir=" + o.Certs, "--webhook-bind-address=" + address, "--drain=0s", "--linger=0s"},
		o.WebhookArgs...)
	server, err := o.serve(ctx, "webhook", args)
	if err != nil {
		return server, err
	}
	endpoint := install.Endpoint{URL: "https://" + address, CABundle: caBundle}
	return server, install.Webhooks(ctx, c, configurations, endpoint)
}

func (o Options) startController(ctx context.Context) (*Server, error) {
	args := append([]string{"--kubeconfig=" + o.Kubeconfig, "--leader-elect", "--leader-election-namespace=" + install.Namespace}, o.ControllerArgs...)
	return o.serve(ctx, "controller", args)
}

// serve starts a process with the flags that both have and waits until it says
// that it is ready. It returns a process that started but is not ready too.
func (o Options) serve(ctx context.Context, name string, args []string) (*Server, error) {
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
// still writes is admitted.
func (r *Operator) Stop() error {
	var errs []error
	for _, server := range r.servers() {
		errs = append(errs, server.stop())
	}
	return errors.Join(errs...)
}

// servers are the processes that run, in the order in which they are to end.
func (r *Operator) servers() []*Server {
	return slices.DeleteFunc([]*Server{r.Controller, r.Webhook}, func(s *Server) bool { return s == nil })
}
