// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command local runs both processes of the operator on this machine until it is interrupted, for
// the cluster of the current kubeconfig or a local one: "make run". docs/run.md describes it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
)

func main() {
	log.SetLogger(klog.Logger{}) // Otherwise controller-runtime prints that it has no logger.
	// A Ctrl-C also ends the other programs of a pipe, such as tee, and a write to it must not end this
	// one before it has removed what it installed: hence SIGPIPE.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

// enabled returns the value of a variable of the environment that is true or false.
func enabled(name string, byDefault bool) (bool, error) {
	value := os.Getenv(name)
	if value == "" {
		return byDefault, nil
	}
	on, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("%s is %q: set it to true or false", name, value)
	}
	return on, nil
}

func run(ctx context.Context) (err error) {
	webhooks, err := enabled("ENABLE_WEBHOOKS", true)
	if err != nil {
		return err
	}
	cluster, err := selectCluster(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("using %s\n", cluster)
	if cluster.local {
		if err := cluster.start(ctx); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("bin", "run-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o := &operator{cluster: cluster, dir: dir}
	err = o.start(ctx, webhooks)
	if err == nil {
		fmt.Printf("\nThe operator is running. In another terminal:\n  %s apply -f config/samples\nCtrl-C stops it; %s.\n\n",
			cluster.kubectl(), cluster.afterwards())
		err = o.wait(ctx)
	}
	return errors.Join(err, o.stop())
}

// operator is the two processes, and what is installed for them.
type operator struct {
	cluster *cluster
	// dir has their kubeconfig, and certs the certificate of the webhook.
	dir, certs string
	installed  *installation
	// running are the processes in the order of their start.
	running []*process
}

// start returns when both processes are ready. After an error too, stop is to be called.
func (o *operator) start(ctx context.Context, webhooks bool) error {
	// With a single context, the processes keep their cluster when the current context changes.
	kubeconfig := filepath.Join(o.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*o.cluster.config, kubeconfig); err != nil {
		return err
	}
	var err error
	if o.installed, err = newInstallation(o.cluster); err != nil {
		return err
	}
	if err := o.installed.prepare(ctx); err != nil {
		return err
	}
	fmt.Printf("What this run installs in the cluster is removed when it stops. If it is killed, this command removes it:\n  %s delete %s -l %s\n",
		o.cluster.kubectl(), resources, runLabel)
	if webhooks {
		if err := o.startWebhook(ctx); err != nil {
			return err
		}
	}
	if err := o.installed.policies(ctx); err != nil {
		return err
	}
	return o.launch(ctx, "controller", "--kubeconfig="+kubeconfig, "--leader-elect", "--leader-election-namespace="+o.installed.namespace)
}

func (o *operator) startWebhook(ctx context.Context) error {
	hooks, err := o.webhookConfigurations(ctx)
	if err != nil {
		return err
	}
	o.certs = hooks.LocalServingCertDir
	address := fmt.Sprintf("%s:%d", hooks.LocalServingHost, hooks.LocalServingPort)
	if err := o.launch(ctx, "webhook", "--webhook-bind-address="+address, "--cert-dir="+o.certs, "--shutdown-delay=0s"); err != nil {
		return err
	}
	return o.installed.webhooks(ctx, hooks)
}

// launch starts a process of bin, and waits until it is ready.
func (o *operator) launch(ctx context.Context, name string, args ...string) error {
	addresses, err := freeport.Addresses(2)
	if err != nil {
		return err
	}
	more := strings.Fields(os.Getenv(strings.ToUpper(name) + "_ARGS"))
	args = append(args, "--metrics-bind-address="+addresses[0], "--health-probe-bind-address="+addresses[1],
		"--zap-encoder=console", "--zap-time-encoding=rfc3339")
	p, err := startProcess(name, exec.Command(filepath.Join("bin", name), append(args, more...)...), os.Stdout)
	if err != nil {
		return err
	}
	o.running = append(o.running, p)
	fmt.Printf("%s: metrics at http://%s/metrics, health at http://%s/readyz\n", name, addresses[0], addresses[1])
	return p.awaitReady(ctx, "http://"+addresses[1]+"/readyz")
}

// wait returns when ctx ends, or the error of a process that ends before.
func (o *operator) wait(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, p := range o.running {
		go func() {
			<-p.done
			cancel(p.ended())
		}()
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// stop ends the controller, then removes what was installed, and then ends the webhook: so the API server
// refuses no object because the webhook has ended.
func (o *operator) stop() error {
	if len(o.running) > 0 {
		fmt.Println("stopping the operator;", o.cluster.afterwards())
	}
	var errs []error
	for _, process := range slices.Backward(o.running) {
		if process.name == "webhook" {
			errs = append(errs, o.installed.remove())
		}
		errs = append(errs, process.stop())
	}
	if o.installed != nil {
		errs = append(errs, o.installed.remove())
	}
	if o.certs != "" {
		errs = append(errs, os.RemoveAll(o.certs))
	}
	return errors.Join(errs...)
}
