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
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/modelbox-operator/modelbox-operator/cli/tree"
)

// followEach is the time between two reads of an object that is followed.
const followEach = time.Second

// follow shows the progress of an object until it is Ready or Stalled. It reads the object each
// second, so that it needs no permission to watch.
func (o *statusOptions) follow(ctx context.Context, t *target) error {
	f := follower{statusOptions: o, target: t}
	limit, stop := ctx, context.CancelFunc(func() {})
	if o.timeout > 0 {
		limit, stop = context.WithTimeout(ctx, o.timeout)
	}
	defer stop()
	err := wait.PollUntilContextCancel(limit, followEach, true, func(context.Context) (bool, error) { return f.read(ctx) })
	if wait.Interrupted(err) && ctx.Err() == nil {
		return &exitError{exitTimeout, fmt.Errorf("%s is neither Ready nor Stalled after %s", t, o.timeout)}
	}
	return err
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
		f.show(tree.Message(obj))
		if state := tree.State(obj); state != tree.Stalled {
			return state == tree.Ready, nil
		}
		return true, errors.New(f.target.String() + " is Stalled: " + tree.Message(obj))
	case first, apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return true, err
	case err == nil, apierrors.IsNotFound(err):
		return true, fmt.Errorf("%s was deleted", f.target)
	}
	f.show(err.Error())
	return false, nil
}

// show prints a line if it differs from the last one.
func (f *follower) show(text string) {
	if line := fmt.Sprintf("%s  %s", f.target, text); line != f.line {
		f.line = line
		fmt.Fprintln(f.Out, line)
	}
}
