// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

type statusOptions struct {
	clusterFlags
	sizes      sizesFlag
	watch, all bool
	timeout    time.Duration
}

func newStatus(env Env) *cobra.Command {
	o := &statusOptions{clusterFlags: newClusterFlags(env)}
	cmd := &cobra.Command{
		Use:     "status {KIND/NAME [-w] | --all | --sizes FILE}",
		GroupID: online,
		Short:   "Show an object with its conditions, children, pods, problems and events",
		Long: `Show an object as a tree: its conditions, the problems in its status, its children with their pods, and the newest
events. With -w, follow a rollout until the object is Ready or Stalled, for example in CI.

With --sizes, list the ModelBoxes whose stored values differ from the current ones of their sizes, with these fields; "{} resize" writes them.

Exit codes: 0; with -w also 1 if the object is Stalled or deleted, and 2 if --timeout has passed before.`,
		Example: `  {} status modelbox/web
  {} status --all -n serving

  # Which ModelBoxes do not have the current values of their sizes
  {} status --sizes sizes.yaml

  # Wait for a rollout
  {} status modelbox/web -w --timeout 15m`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: completeKinds(func(*kinds.Kind) bool { return true }),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "follow the object until it is Ready or Stalled")
	cmd.Flags().BoolVar(&o.all, "all", false, "show all objects of the five kinds in the namespace")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "how long -w follows the object, such as 15m; 0 is without end")
	o.sizes.bind(cmd)
	cmd.MarkFlagsMutuallyExclusive("watch", "all", "sizes")
	return cmd
}

func (o *statusOptions) run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && (o.all || o.sizes.file != ""):
		return usage("name an object, or set --all or --sizes, not both")
	case o.sizes.file != "":
		return o.showOlder(ctx)
	case o.all:
		return o.showAll(ctx)
	case len(args) == 0:
		return usage("name an object as KIND/NAME, such as modelbox/web, or set --all")
	}
	target, err := o.target(args)
	if err != nil {
		return err
	}
	if o.watch {
		return o.follow(ctx, target)
	}
	return target.show(ctx)
}

// followEach is the time between two reads of an object that is followed.
const followEach = time.Second

// follow shows the progress of an object until it is Ready or Stalled. It reads the object each
// second, so that it needs no permission to watch.
func (o *statusOptions) follow(ctx context.Context, t *target) error {
	var uid types.UID
	shown := ""
	err := wait.PollUntilContextTimeout(ctx, followEach, cmp.Or(o.timeout, math.MaxInt64), true, func(context.Context) (bool, error) {
		text, done, err := t.progress(ctx, &uid)
		if text != "" && text != shown {
			fmt.Fprintf(o.Out, "%s  %s\n", t, text)
			shown = text
		}
		return done, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return exitError{Code: exitTimeout, Err: fmt.Errorf("%s is neither Ready nor Stalled after %s", t, o.timeout)}
	}
	return err
}

// progress returns the progress of the object, and whether it has an outcome; uid is that of the
// object as it was read first. An error after the first read is progress that is awaited: the API
// server may be restarted during a rollout.
func (t *target) progress(ctx context.Context, uid *types.UID) (text string, done bool, err error) {
	obj := t.kind.New()
	err = t.client.Get(ctx, t.key, obj)
	switch first := *uid == ""; {
	case err == nil && (first || obj.GetUID() == *uid):
		*uid = obj.GetUID()
		text, state := message(obj), stateOf(obj)
		if state == stateStalled {
			err = fmt.Errorf("%s is Stalled: %s", t, text)
		}
		return text, state == stateReady, err
	case first, apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return "", true, err
	case err == nil, apierrors.IsNotFound(err):
		return "", true, fmt.Errorf("%s was deleted", t)
	}
	return err.Error(), false, nil
}

// showAll shows the objects of the namespace.
func (o *statusOptions) showAll(ctx context.Context) error {
	c, namespace, err := o.connect()
	if err != nil {
		return err
	}
	objects, err := o.objectsIn(ctx, c, namespace)
	for i := 0; i < len(objects) && err == nil; i++ {
		t := &target{o.Env, kinds.Of(objects[i].GroupVersionKind().GroupKind()), client.ObjectKeyFromObject(&objects[i]), c}
		err = t.show(ctx)
	}
	if err == nil && len(objects) == 0 {
		fmt.Fprintf(o.ErrOut, "No objects of the five kinds in namespace %s.\n", namespace)
	}
	return err
}

// objectsIn returns the objects of all kinds that the cluster has, in a namespace, or in all
// namespaces if it is empty. Kinds that the user may not list are printed, if there are others.
func (e *Env) objectsIn(ctx context.Context, c client.Client, namespace string) (out []unstructured.Unstructured, err error) {
	var hidden []error
	for _, kind := range kinds.All {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GVK.GroupVersion().WithKind(kind.GVK.Kind + "List"))
		switch err := c.List(ctx, list, client.InNamespace(namespace)); {
		case apierrors.IsForbidden(err):
			hidden = append(hidden, fmt.Errorf("listing %s: %w", kind.Resource(), err))
		case err != nil && !meta.IsNoMatchError(err):
			return nil, fmt.Errorf("listing %s: %w", kind.Resource(), err)
		}
		out = append(out, list.Items...)
	}
	if len(hidden) == len(kinds.All) {
		return nil, hidden[0]
	}
	for _, err := range hidden {
		fmt.Fprintln(e.ErrOut, "not visible:", err)
	}
	return out, nil
}
