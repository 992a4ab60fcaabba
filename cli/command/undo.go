// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	"github.com/modelbox-operator/modelbox-operator/cli/rollout"
)

type undoOptions struct {
	toRevision int64
	yes, force bool
	confirmed  string // the difference that was shown, and that the user wants
}

func newUndo(env Env) *cobra.Command {
	o := &undoOptions{}
	cmd := onTarget(env, &cobra.Command{
		Use:   "undo KIND/NAME [--to-revision N]",
		Short: "Roll a ModelBox or an App back to a revision",
		Long: `Return a ModelBox or an App to a revision of its Deployment: restore the image, command, args, env, envFrom and
resources of the main container into the fields of the object itself, after showing the difference. (The operator
would revert "kubectl rollout undo".) Environment variables that another field manager has added to the Deployment
stay as they are.

If anything else of the pod template differs in that revision, the difference is printed and nothing is written. Nor
is anything written if another field manager owns the fields by a server-side apply, or is a GitOps tool, because
its next apply would revert the change: change its source instead, or use --force.

If the rollout of the spec has failed, and the object has returned (onFailedRollout: Return), 0 is the current revision, and
the spec of the last complete rollout is restored, but for the fields that a return leaves as they are.

Without a terminal it does not ask, and needs --yes.`,
		Example: `  # To the revision before the current one
  {} undo modelbox/web

  {} history modelbox/web
  {} undo modelbox/web --to-revision 3 --yes`,
	}, hasHistory, o.run)
	cmd.Flags().Int64Var(&o.toRevision, "to-revision", 0, "revision to return to; 0 is the one before the current one")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&o.force, "force", false, "write although another field manager will revert it")
	return cmd
}

func (o *undoOptions) run(ctx context.Context, t *target) error {
	obj, h, err := t.history(ctx)
	if err != nil {
		return err
	}
	to, err := rollout.Find(h.revisions, o.toRevision)
	if err != nil {
		return err
	}
	current, from := &h.revisions[len(h.revisions)-1], obj
	if current.RolledBack != "" { // What the children are made of is not the spec.
		if from, err = t.lastComplete(ctx, obj); err != nil {
			return err
		}
	}
	desired, err := rollout.Template(t.kind, from)
	if err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	wanted := rollout.WithoutForeignEnv(&to.Template, h.deployment, desired, h.container)
	spec, others, err := rollout.Changes(rollout.Pending(&current.Template, desired, h.container), wanted, h.container)
	if err != nil {
		return err
	}
	if others != "" {
		return fmt.Errorf("revision %d differs from the current one in more than the image, command, args, env, envFrom and resources of container %q; "+
			"nothing was written. Change the object itself; the other differences are:\n%s", to.Number, h.container, others)
	}
	changed, err := rollout.Apply(t.kind, from, spec)
	if err != nil {
		return fmt.Errorf("revision %d cannot be restored: %w", to.Number, err)
	}
	if len(differing(obj, changed)) == 0 {
		fmt.Fprintf(t.Out, "%s already has the state of revision %d (unchanged)\n", t, to.Number)
		return nil
	}
	return o.write(ctx, t, obj, changed, to.Number)
}

// lastComplete returns an object with the spec of the last complete rollout.
func (t *target) lastComplete(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	last, err := rollout.LastSpec(ctx, t.client, obj)
	if err != nil {
		return nil, err
	}
	return rollout.Restore(obj, last)
}

// write shows the difference, and writes it if the user agrees.
func (o *undoOptions) write(ctx context.Context, t *target, obj, changed *unstructured.Unstructured, revision int64) error {
	diff, err := render.Diff(t.String(), obj, changed)
	if err != nil {
		return err
	}
	if diff != o.confirmed {
		fmt.Fprint(t.Out, diff)
		if err := o.checkOwners(t, obj, differing(obj, changed)); err != nil {
			return err
		}
		if err := o.confirm(t, fmt.Sprintf("Return %s to revision %d?", t, revision)); err != nil {
			return err
		}
		o.confirmed = diff
	}
	// What was shown is what is patched: another state of the object is a conflict, and is shown if
	// it differs.
	patch := client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{})
	if err := t.client.Patch(ctx, changed, patch, client.FieldOwner(fieldManager)); err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "%s returned to revision %d\n", t, revision)
	if kinds.IsPaused(obj) {
		fmt.Fprintf(t.ErrOut, "warning: %s is paused, so the change waits until it is resumed\n", t)
	}
	return nil
}

// checkOwners warns of field managers that will revert the change. Without --force it is an
// error.
func (o *undoOptions) checkOwners(t *target, obj *unstructured.Unstructured, fields []string) error {
	owners := rollout.Owners(obj.GetManagedFields(), fields, fieldManager)
	for _, owner := range owners {
		fmt.Fprintf(t.ErrOut, "warning: %s, and its next apply reverts the change\n", owner)
	}
	if len(owners) > 0 && !o.force {
		return errors.New("nothing was written: change the source of that field manager, or use --force")
	}
	return nil
}

// confirm asks the user, on a terminal.
func (o *undoOptions) confirm(t *target, question string) error {
	if o.yes {
		return nil
	}
	if !t.Interactive {
		return errors.New("nothing was written: the standard input is no terminal, so use --yes")
	}
	fmt.Fprintf(t.Out, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(t.In).ReadString('\n') // Without an answer it is no.
	if !strings.EqualFold(strings.TrimSpace(answer), "y") && !strings.EqualFold(strings.TrimSpace(answer), "yes") {
		return errors.New("nothing was written")
	}
	return nil
}
