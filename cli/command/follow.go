// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/tree"
)

// followEach is the time between two reads of an object that is followed.
const followEach = time.Second

// follow shows the progress of an object until it is Ready or Stalled. It reads the object each
// second, so that it needs no permission to watch.
func (o *statusOptions) follow(ctx context.Context, t *target) error {
	var timeout <-chan time.Time
	if o.timeout > 0 {
		timeout = o.Clock.After(o.timeout)
	}
	f := follower{statusOptions: o, target: t}
	for {
		if done, err := f.read(ctx); done {
			f.endLine()
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout:
			f.endLine()
			return &exitError{exitTimeout, fmt.Errorf("%s is neither Ready nor Stalled after %s", t, o.timeout)}
		case <-o.Clock.After(followEach):
		}
	}
}

type follower struct {
	*statusOptions
	target *target
	// uid is that of the object as it was read first, and line what was printed last.
	uid  types.UID
	line string
}

// read shows the progress of the object, and reports whether it has an outcome. An error after the
// first read is shown and awaited: the API server may be restarted during a rollout.
func (f *follower) read(ctx context.Context) (done bool, err error) {
	obj := f.target.kind.New()
	err = f.target.get(ctx, obj)
	switch first := f.uid == ""; {
	case err == nil && (first || obj.GetUID() == f.uid):
		f.uid = obj.GetUID()
		f.show(tree.Progress(obj))
		return outcome(f.target, obj)
	case first, apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return true, err
	case err == nil, apierrors.IsNotFound(err):
		return true, fmt.Errorf("%s was deleted", f.target)
	}
	f.show(err.Error())
	return false, nil
}

// outcome reports whether an object has an outcome, and returns that of a failure as an error.
func outcome(t *target, obj client.Object) (bool, error) {
	switch tree.Outcome(obj) {
	case tree.Succeeded:
		return true, nil
	case tree.Failed:
		return true, errors.New(t.String() + " is Stalled: " + tree.Message(obj))
	}
	return false, nil
}

// show prints a line if it differs from the last one: on a terminal in its place.
func (f *follower) show(text string) {
	line := fmt.Sprintf("%s  %s", f.target, text)
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
