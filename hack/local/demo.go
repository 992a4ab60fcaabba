// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// demoCluster is the name of the demo's own cluster, unless CLUSTER names another one,
// so that the demo does not change the cluster that the developer works with.
const demoCluster = "modelbox-demo"

// demo shows the main features on a cluster of its own, and removes that cluster.
func demo(ctx context.Context, l local) (err error) {
	began := time.Now()
	if os.Getenv(cluster.NameEnv) == "" {
		if l.cluster, err = cluster.New(demoCluster, l.cache, l.root, l.report); err != nil {
			return err
		}
	}
	// Objects of an earlier demo would change the result.
	if err := down(ctx, l); err != nil {
		return err
	}
	keep := os.Getenv("KEEP") != "" && os.Getenv("KEEP") != "0"
	if !keep {
		defer func() {
			// A Ctrl-C ends the demo, but must not end the removal of the cluster.
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
	options, err := l.operatorOptions(true)
	if err != nil {
		return err
	}
	options.Output = process.NewOutput(file, false)
	running, t, err := l.stage(ctx, options)
	if err != nil {
		return errors.Join(err, tail(logs))
	}
	if err := running.During(ctx, t.Run); err != nil {
		return errors.Join(err, running.Stop(), tail(logs))
	}
	fmt.Fprintf(l.out, "\nEverything was as expected, after %s.\n", progress.Short(time.Since(began)))
	if keep {
		l.describe(options, running)
		running.KeepRunning(ctx, l.report, clock.RealClock{})
		l.report.Say("The cluster keeps running: 'CLUSTER=%s make cluster-down' removes it.", l.cluster.Name)
	}
	return errors.Join(err, running.Stop())
}

// fetcher returns where buildFetcher puts the program.
func (l local) fetcher() string { return filepath.Join(l.root, "bin", "fetch-model") }

// buildFetcher builds the program that fetches models.
func (l local) buildFetcher(ctx context.Context) error {
	step := l.report.Start("building ./fetch")
	defer step.Fail()
	command := exec.CommandContext(ctx, "go", "build", "-o", l.fetcher(), ".")
	command.Dir = filepath.Join(l.root, "fetch")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building the program that fetches models: %w\n%s", err, out)
	}
	step.Done()
	return nil
}

// stage starts both processes and prepares the tour.
func (l local) stage(ctx context.Context, options operator.Options) (*operator.Operator, *tour.Tour, error) {
	if err := l.buildFetcher(ctx); err != nil {
		return nil, nil, err
	}
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
		FetchModel: l.fetcher(),
		AuditLog:   l.cluster.AuditLog(),
	}, nil
}

// tail returns an error with the last lines of the processes' log.
func tail(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	const most = 25
	return fmt.Errorf("the end of the processes' log:\n%s", strings.Join(lines[max(0, len(lines)-most):], "\n"))
}
