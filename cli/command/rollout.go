// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/plan"
)

func newRollout(env Env) *cobra.Command {
	cmd := onTarget(env, &cobra.Command{
		Use:   "rollout now KIND/NAME",
		Short: "Start a rollout that waits for a window",
		Long: `Start the rollout of a change of the spec that waits for a window (holdChanges: All). It sets an annotation to
metadata.generation, so that a later change waits again.

It needs the verb override on freezes.rights.modelbox-operator.github.io, and a freeze still holds the rollout.`,
		Example: `  {} rollout now modelbox/web`,
	}, (*kinds.Kind).HasPods, rolloutNow)
	run, kindsOf := cmd.RunE, cmd.ValidArgsFunction
	cmd.Args = cobra.MatchAll(cobra.RangeArgs(2, 3), func(_ *cobra.Command, args []string) error {
		if args[0] != "now" {
			return usage("unknown argument %q: write rollout now KIND/NAME", args[0])
		}
		return nil
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, args[1:]) }
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return []string{"now"}, cobra.ShellCompDirectiveNoFileComp
		}
		return kindsOf(cmd, args[1:], toComplete)
	}
	return cmd
}

// rolloutNow writes the annotation, if a change of the spec waits for a window.
func rolloutNow(ctx context.Context, t *target) error {
	if !t.kind.HasPods() {
		return usage("%s has no rollout that waits for a window: a ModelBox, an App and a Genericdaemon have", t)
	}
	obj := t.kind.Unstructured()
	if err := t.client.Get(ctx, t.key, obj); err != nil {
		return err
	}
	if err := waitsForWindow(obj); err != nil {
		return fmt.Errorf("nothing was written, because no change of the spec of %s waits for a window: %w", t, err)
	}
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q,"annotations":{%q:"%d"}}}`,
		obj.GetUID(), obj.GetResourceVersion(), api.AnnotationRolloutNow, obj.GetGeneration())
	if err := t.client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldManager)); err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "%s annotated with %s=%d: the rollout of this spec waits for no window; follow it with 'modelbox status %s -w'\n",
		t, api.AnnotationRolloutNow, obj.GetGeneration(), t)
	if reason, frozen, err := plan.Frozen(ctx, t.client, t.key.Namespace); err == nil && frozen { // Who may not read it is told by status.
		fmt.Fprintf(t.ErrOut, "warning: namespace %s is frozen (%s), so the rollout waits for the end of the freeze\n", t.key.Namespace, reason)
	}
	return nil
}

// waitsForWindow returns an error that says what an object does instead of waiting for a window with a
// change of its spec. While one waits, status has no hash of the pod template.
func waitsForWindow(obj *unstructured.Unstructured) error {
	var out struct {
		Status struct {
			ObservedGeneration int64              `json:"observedGeneration"`
			Template           string             `json:"template"`
			Conditions         []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &out); err != nil {
		return err
	}
	switch ready := meta.FindStatusCondition(out.Status.Conditions, api.ConditionReady); {
	case ready == nil || out.Status.ObservedGeneration != obj.GetGeneration():
		return fmt.Errorf("the controller has not observed generation %d yet; try again in a moment", obj.GetGeneration())
	case ready.Reason != "WaitingForWindow":
		return fmt.Errorf("condition Ready is %s (%s): %s", ready.Status, ready.Reason, ready.Message)
	case out.Status.Template != "":
		return fmt.Errorf("only changed configuration waits, and 'modelbox restart' gives it to the pods now: %s", ready.Message)
	}
	return nil
}
