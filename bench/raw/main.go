// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command raw sends the writes that a controller has to send, and does nothing else: no
// watch, no cache, no queue, no comparison. Its cost is the lower bound that controllers
// are compared with. It lists the objects once and sends the writes with client-go's
// typed clients and as many workers as the operator. Then it waits for a signal, so that
// its CPU time can still be read.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	operator "github.com/modelbox-operator/modelbox-operator/api/client/clientset/versioned"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "raw:", err)
		os.Exit(1)
	}
}

func run() error {
	// controller-runtime, which the operator's builders import, has already registered
	// -kubeconfig in flag.CommandLine.
	flags := flag.NewFlagSet("raw", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "the file with the cluster's address and credentials")
	workers := flags.Int("workers", 8, "how many objects are handled at the same time")
	_ = flags.Parse(os.Args[1:]) // ExitOnError: it exits on failure.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	c, err := connect(*kubeconfig)
	if err != nil {
		return err
	}
	jobs, err := c.modelBoxes(ctx)
	if err != nil {
		return err
	}
	if err := each(ctx, *workers, jobs); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

type clients struct {
	kube kubernetes.Interface
	ours operator.Interface
}

func connect(kubeconfig string) (*clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	c := &clients{}
	if c.kube, err = kubernetes.NewForConfig(binary); err != nil {
		return nil, err
	}
	c.ours, err = operator.NewForConfig(config)
	return c, err
}

// job sends the writes for one object.
type job func(context.Context) error

// each runs all jobs with a number of workers.
func each(ctx context.Context, workers int, jobs []job) error {
	queue, errs := make(chan job, len(jobs)), make(chan error, len(jobs))
	for _, job := range jobs {
		queue <- job
	}
	close(queue)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for job := range queue {
				if err := job(ctx); err != nil {
					errs <- err
				}
			}
		})
	}
	group.Wait()
	close(errs)
	return <-errs
}

func (c *clients) modelBoxes(ctx context.Context) ([]job, error) {
	list, err := c.ours.ModelV1().ModelBoxes(modelboxes.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var jobs []job
	for i := range list.Items {
		jobs = append(jobs, func(ctx context.Context) error { return c.write(ctx, &list.Items[i]) })
	}
	return jobs, nil
}

func (c *clients) write(ctx context.Context, box *modelv1.ModelBox) error {
	writes, err := modelboxes.WritesOf(box)
	if err != nil {
		return err
	}
	if _, err := c.kube.AppsV1().Deployments(box.Namespace).Create(ctx, writes.Deployment, metav1.CreateOptions{FieldManager: "raw"}); err != nil {
		return err
	}
	if _, err := c.kube.CoreV1().Services(box.Namespace).Create(ctx, writes.Service, metav1.CreateOptions{FieldManager: "raw"}); err != nil {
		return err
	}
	_, err = c.ours.ModelV1().ModelBoxes(box.Namespace).Patch(ctx, box.Name, types.MergePatchType, writes.Status, metav1.PatchOptions{}, "status")
	return err
}
