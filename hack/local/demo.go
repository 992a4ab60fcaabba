// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/hack/local/cluster"
	"github.com/modelbox-operator/modelbox-operator/hack/local/operator"
	"github.com/modelbox-operator/modelbox-operator/hack/local/process"
	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
	"github.com/modelbox-operator/modelbox-operator/hack/local/tour"
)

// demoCluster is the demo's own cluster, unless CLUSTER names another: one that a
// person works with is not disturbed.
const demoCluster = "modelbox-demo"

// demo shows the main job on a cluster of its own and takes all of it down.
func demo(ctx context.Context, l local) (err error) {
	began := time.Now()
	if os.Getenv(cluster.NameEnv) == "" {
		if l.cluster, err = cluster.New(demoCluster, l.cache, l.root, l.report); err != nil {
			return err
		}
	}
	// What an earlier demo left would change the story.
	if err := down(ctx, l); err != nil {
		return err
	}
	keep := os.Getenv("KEEP") != "" && os.Getenv("KEEP") != "0"
	if !keep {
		defer func() {
			// The end is not bounded by a Ctrl-C that asked for it.
			err = errors.Join(err, down(context.WithoutCancel(ctx), l))
		}()
	}
	if err := l.up(ctx); err != nil {
		return err
	}
	logs := filepath.Join(l.root, "bin", l.cluster.Name+".log")
	file, err := os.Create(logs)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	running, t, err := l.stage(ctx, file)
	if err != nil {
		return errors.Join(err, tail(logs))
	}
	if err := running.During(ctx, t.Run); err != nil {
		return errors.Join(err, running.Stop(), tail(logs))
	}
	fmt.Fprintf(l.out, "\nAll of it was as it should be, after %s.\n", progress.Short(time.Since(began)))
	if keep {
		l.describe(running)
		running.KeepRunning(ctx, l.report, clock.RealClock{})
		l.report.Say("The cluster stays: 'CLUSTER=%s make cluster-down' removes it.", l.cluster.Name)
	}
	return errors.Join(err, running.Stop())
}

// stage starts both processes and makes the tour ready.
func (l local) stage(ctx context.Context, logs *os.File) (*operator.Operator, *tour.Tour, error) {
	options, err := l.operatorOptions(true)
	if err != nil {
		return nil, nil, err
	}
	options.Output = process.NewOutput(logs, false)
	running, err := operator.Start(ctx, options)
	if err != nil {
		return nil, nil, fmt.Errorf("starting the operator: %w", err)
	}
	c, err := client.New(options.Config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, nil, errors.Join(err, running.Stop())
	}
	return running, &tour.Tour{
		Out:        l.out,
		Colour:     progress.IsTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "",
		Kubectl:    options.Kubectl,
		Kubeconfig: options.Kubeconfig,
		Client:     c,
		Samples:    filepath.Join(l.root, "config", "samples"),
		AuditLog:   l.cluster.AuditLog(),
	}, nil
}

// tail is an error with the last lines of the processes' log.
func tail(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	const most = 25
	return fmt.Errorf("the processes' log ends:\n%s", strings.Join(lines[max(0, len(lines)-most):], "\n"))
}
