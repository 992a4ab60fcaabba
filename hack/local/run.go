// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/utils/clock"

	"github.com/modelbox-operator/modelbox-operator/hack/local/operator"
	"github.com/modelbox-operator/modelbox-operator/hack/local/process"
	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
)

// run runs both processes in the foreground until ctx ends, and restarts a process that
// exits before. The cluster keeps running.
func run(ctx context.Context, l local) error {
	webhooks, err := webhooksEnabled()
	if err != nil {
		return err
	}
	if err := l.up(ctx); err != nil {
		return err
	}
	options, err := l.operatorOptions(webhooks)
	if err != nil {
		return err
	}
	running, err := operator.Start(ctx, options)
	if err != nil {
		return fmt.Errorf("starting the operator: %w", err)
	}
	l.describe(running)
	running.KeepRunning(ctx, l.report, clock.RealClock{})
	l.report.Say("stopping the operator; the cluster keeps running (go run ./hack/local down removes it)")
	return running.Stop()
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
	return operator.Options{
		Root:           l.root,
		Kubeconfig:     l.cluster.Kubeconfig,
		Config:         config,
		Kubectl:        filepath.Join(l.root, "bin", "kubectl"),
		Certs:          l.certs(),
		Webhooks:       webhooks,
		WebhookArgs:    strings.Fields(os.Getenv("WEBHOOK_ARGS")),
		ControllerArgs: strings.Fields(os.Getenv("CONTROLLER_ARGS")),
		Output:         process.NewOutput(l.out, progress.IsTerminal(os.Stdout)),
		Report:         l.report,
	}, nil
}

// describe prints how to use the running operator.
func (l local) describe(running *operator.Operator) {
	l.report.Say("\nThe operator is running. In another terminal:\n  bin/kubectl --kubeconfig %s apply -f config/samples",
		l.relative(l.cluster.Kubeconfig))
	for _, server := range []*operator.Server{running.Webhook, running.Controller} {
		if server != nil {
			l.report.Say("  %s: metrics at %s/metrics, health at %s/readyz", server.Name(), server.Metrics, server.Probes)
		}
	}
	l.report.Say("Ctrl-C stops it; the cluster keeps running.\n")
}
