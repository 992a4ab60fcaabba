// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/hack/local/install"
	"github.com/modelbox-operator/modelbox-operator/hack/local/operator"
	"github.com/modelbox-operator/modelbox-operator/hack/local/process"
	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
	"github.com/modelbox-operator/modelbox-operator/hack/local/target"
)

// run runs both processes in the foreground until ctx ends, and restarts a process that
// exits before. The cluster keeps running.
func run(ctx context.Context, l local) error {
	webhooks, err := webhooksEnabled()
	if err != nil {
		return err
	}
	chosen, err := l.choose(ctx)
	if err != nil {
		return err
	}
	options, err := l.prepare(ctx, chosen, webhooks)
	if err != nil {
		return err
	}
	running, err := operator.Start(ctx, options)
	if err != nil {
		return fmt.Errorf("starting the operator: %w", err)
	}
	l.describe(options, running)
	running.KeepRunning(ctx, l.report, clock.RealClock{})
	l.report.Say("stopping the operator; %s", staysRunning(options.Shared))
	return running.Stop()
}

func staysRunning(shared bool) string {
	if shared {
		return "the objects and their children stay"
	}
	return "the cluster keeps running (make cluster-down removes it)"
}

// prepare returns the options of a run. It starts the local cluster, if that was chosen.
func (l local) prepare(ctx context.Context, chosen *shared, webhooks bool) (operator.Options, error) {
	if chosen != nil {
		return l.sharedOptions(ctx, chosen, webhooks)
	}
	if err := l.up(ctx); err != nil {
		return operator.Options{}, err
	}
	return l.operatorOptions(webhooks)
}

func webhooksEnabled() (bool, error) {
	value := os.Getenv("ENABLE_WEBHOOKS")
	if value == "" {
		return true, nil
	}
	enabled, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("ENABLE_WEBHOOKS is %q: set it to true or false", value)
	}
	return enabled, nil
}

func (l local) operatorOptions(webhooks bool) (operator.Options, error) {
	config, err := l.cluster.Config()
	if err != nil {
		return operator.Options{}, err
	}
	options := l.commonOptions(webhooks)
	options.Kubeconfig, options.Config = l.cluster.Kubeconfig, config
	options.Describe = "the local cluster " + l.cluster.Name
	options.Command = "bin/kubectl --kubeconfig " + target.Quote(l.relative(l.cluster.Kubeconfig))
	return options, nil
}

// sharedOptions returns the options of a run against a cluster that others may use.
func (l local) sharedOptions(ctx context.Context, chosen *shared, webhooks bool) (operator.Options, error) {
	c, err := client.New(chosen.config, client.Options{})
	if err != nil {
		return operator.Options{}, err
	}
	options := l.commonOptions(webhooks)
	options.Shared, options.Config = true, chosen.config
	// Runs against several clusters at the same time have a certificate each.
	options.Certs = filepath.Join(l.root, "bin", "certs", "context-"+url.PathEscape(chosen.Context))
	options.Kubeconfig, options.Context = strings.Join(chosen.Files, string(os.PathListSeparator)), chosen.Context
	options.Describe, options.Command = chosen.String(), chosen.Kubectl()
	if options.LeaseNamespace, err = install.LeaseNamespace(ctx, c, chosen.Namespace); err != nil {
		return options, err
	}
	holder, err := install.LeaseHolder(ctx, c, options.LeaseNamespace)
	if err == nil && holder != "" {
		l.report.Say("the lease modelbox-controller in namespace %s is held by %s: the controller waits until it is released or expires, and reconciles nothing before",
			options.LeaseNamespace, holder)
	}
	return options, err
}

// commonOptions returns the options that do not depend on the cluster.
func (l local) commonOptions(webhooks bool) operator.Options {
	return operator.Options{
		Root:           l.root,
		Kubectl:        filepath.Join(l.root, "bin", "kubectl"),
		Certs:          l.certs(),
		Webhooks:       webhooks,
		WebhookArgs:    strings.Fields(os.Getenv("WEBHOOK_ARGS")),
		ControllerArgs: strings.Fields(os.Getenv("CONTROLLER_ARGS")),
		Output:         process.NewOutput(l.out, progress.IsTerminal(os.Stdout)),
		Report:         l.report,
	}
}

// describe prints how to use the running operator.
func (l local) describe(options operator.Options, running *operator.Operator) {
	l.report.Say("\nThe operator is running. In another terminal:\n  %s apply -f config/samples", options.Command)
	for _, server := range []*operator.Server{running.Webhook, running.Controller} {
		if server != nil {
			l.report.Say("  %s: metrics at %s/metrics, health at %s/readyz", server.Name(), server.Metrics, server.Probes)
		}
	}
	l.report.Say("Ctrl-C stops it; %s.\n", staysRunning(options.Shared))
}
