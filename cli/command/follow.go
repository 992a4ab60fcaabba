// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/tree"
)

// retryAfter is the time between two watches, if the first ends or cannot be started.
const retryAfter = time.Second

// follow shows the progress of an object until it is Ready or Stalled.
func (o *statusOptions) follow(ctx context.Context, t *target) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var timeout <-chan time.Time
	if o.timeout > 0 {
		timeout = o.Clock.After(o.timeout)
	}
	f := follower{statusOptions: o, target: t, timeout: timeout}
	for {
		done, err := f.watch(ctx)
		if done || err != nil {
			f.endLine()
			return err
		}
	}
}

type follower struct {
	*statusOptions
	target  *target
	timeout <-chan time.Time
	line    string
}

// watch reads the object and then its changes. It is done if the object has an outcome; it
// is not if the API server ended the watch, which is normal after some minutes.
func (f *follower) watch(ctx context.Context) (done bool, err error) {
	obj := f.target.kind.New()
	if err := f.target.get(ctx, obj); err != nil {
		return true, err
	}
	if done, err := f.see(obj); done {
		return true, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(f.target.kind.GVK.GroupVersion().WithKind(f.target.kind.GVK.Kind + "List"))
	events, err := f.target.client.Watch(ctx, list, client.InNamespace(f.target.key.Namespace),
		client.MatchingFields{metav1.ObjectNameField: f.target.key.Name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: obj.GetResourceVersion()}})
	if err != nil {
		if apierrors.IsForbidden(err) {
			return true, err
		}
		return f.pause(ctx)
	}
	defer events.Stop()
	return f.events(ctx, events.ResultChan())
}

func (f *follower) events(ctx context.Context, events <-chan watch.Event) (bool, error) {
	for {
		select {
		case <-ctx.Done():
			return true, ctx.Err()
		case <-f.timeout:
			return true, f.timedOut()
		case event, ok := <-events:
			if !ok || event.Type == watch.Error {
				return f.pause(ctx)
			}
			if done, err := f.event(event); done {
				return true, err
			}
		}
	}
}

// pause waits until the next watch.
func (f *follower) pause(ctx context.Context) (bool, error) {
	select {
	case <-ctx.Done():
		return true, ctx.Err()
	case <-f.timeout:
		return true, f.timedOut()
	case <-f.Clock.After(retryAfter):
		return false, nil
	}
}

func (f *follower) timedOut() error {
	return &exitError{exitTimeout, fmt.Errorf("%s is neither Ready nor Stalled after %s", f.target, f.statusOptions.timeout)}
}

func (f *follower) event(event watch.Event) (bool, error) {
	changed, ok := event.Object.(*unstructured.Unstructured)
	if !ok || changed.GetName() != f.target.key.Name {
		return false, nil
	}
	if event.Type == watch.Deleted {
		return true, fmt.Errorf("%s was deleted", f.target)
	}
	obj := f.target.kind.New()
	if err := create.Into(changed, obj); err != nil {
		return true, err
	}
	return f.see(obj)
}

// see shows the progress of an object, and reports whether it has an outcome.
func (f *follower) see(obj client.Object) (bool, error) {
	f.show(fmt.Sprintf("%s  %s", f.target, tree.Progress(obj)))
	switch tree.Outcome(obj) {
	case tree.Succeeded:
		return true, nil
	case tree.Failed:
		return true, errors.New(f.target.String() + " is Stalled: " + tree.Message(obj))
	}
	return false, nil
}

// show prints a line if it differs from the last one: on a terminal in its place.
func (f *follower) show(line string) {
	switch {
	case line == f.line:
	case f.Terminal:
		fmt.Fprintf(f.Out, "\r\033[K%s", line)
	default:
		fmt.Fprintln(f.Out, line)
	}
	f.line = line
}

// endLine ends the line that was printed on a terminal.
func (f *follower) endLine() {
	if f.Terminal && f.line != "" {
		fmt.Fprintln(f.Out)
	}
}
