// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/plan"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
)

// fieldManager is the field manager of what the command writes.
const fieldManager = "modelbox-cli"

func newRestart(env Env) *cobra.Command {
	return onTarget(env, &cobra.Command{
		Use:   "restart KIND/NAME",
		Short: "Restart the pods of an object by a rollout",
		Long: `Restart the pods of an object by a rollout of its Deployment (of a Genericdaemon, its DaemonSet), as an Eru and
"kubectl rollout restart" do. For a UnitedDeployment or an Eru it is the Deployment that these act on. The pods are replaced as the rollout
strategy says, so a service that has several replicas stays available.

In a frozen namespace it needs the verb override on freezes.rights.modelbox-operator.github.io, as a change of the pods does.`,
		Example: `  {} restart modelbox/web
  {} status modelbox/web -w`,
	}, func(*kinds.Kind) bool { return true }, restart)
}

// mayRestart returns an error if the namespace is frozen, unless the user may override that.
func (t *target) mayRestart(ctx context.Context) error {
	reason, frozen, err := plan.Frozen(ctx, t.client, t.key.Namespace)
	if err != nil || !frozen {
		return err
	}
	may, err := allowed(ctx, t.client, authorizationv1.ResourceAttributes{Namespace: t.key.Namespace, Verb: "override", Group: rights, Resource: "freezes"})
	if err == nil && !may {
		err = fmt.Errorf("namespace %s is frozen (%s), so %s is not restarted: wait until the annotation %s of the Namespace is removed, or ask for the verb override on freezes.%s",
			t.key.Namespace, reason, t, api.AnnotationFrozen, rights)
	}
	return err
}

// restart writes the time of the restart, unless the child has changed since it was read.
func restart(ctx context.Context, t *target) error {
	obj := t.kind.New()
	if err := t.client.Get(ctx, t.key, obj); err != nil {
		return err
	}
	child := t.candidates(obj)[0]
	if err := t.client.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
		return fmt.Errorf("%s has nothing to restart: %w", t, err)
	}
	kind, name := strings.ToLower(render.KindOf(child)), child.GetName()
	if child.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%s %q is being deleted", kind, name)
	}
	if deployment, ok := child.(*appsv1.Deployment); ok && deployment.Spec.Paused {
		return fmt.Errorf("deployment %q is paused, so a restart would have no effect: run 'kubectl rollout resume deployment/%s' first", name, name)
	}
	if err := t.mayRestart(ctx); err != nil {
		return err
	}
	at := t.Clock.Now().UTC().Truncate(time.Second)
	if last, err := time.Parse(time.RFC3339, render.TemplateOf(child).Annotations[api.AnnotationRestartedAt]); err == nil && !at.After(last) {
		return fmt.Errorf("%s was already restarted for %s, which is not before now: the clocks differ, or it was restarted within this second",
			t, last.Format(time.RFC3339))
	}
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`,
		child.GetUID(), child.GetResourceVersion(), api.AnnotationRestartedAt, at.Format(time.RFC3339))
	if err := t.client.Patch(ctx, child, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("restarting %s: %w", name, err)
	}
	fmt.Fprintf(t.Out, "%s restarted (%s/%s)\n", t, kind, name)
	return nil
}
