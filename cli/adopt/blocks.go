// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
)

// findBlocks sets the autoscaler and the budget of a Deployment that become blocks of the object, and adds notes on
// those that stay, with the reason.
func (a *Adoption) findBlocks(ctx context.Context, kind *kinds.Kind, d *appsv1.Deployment) error {
	for _, empty := range []client.Object{&autoscalingv2.HorizontalPodAutoscaler{}, &policyv1.PodDisruptionBudget{}} {
		gvk, err := a.Client.GroupVersionKindFor(empty)
		if err != nil {
			return err
		}
		err = InCluster(a.Client)(ctx, gvk, d.Namespace, func(u *unstructured.Unstructured) error {
			live := empty.DeepCopyObject().(client.Object)
			wrong := decode(u.DeepCopy(), live)
			if !isOf(live, d) {
				return nil
			}
			block, why := blockOf(kind, d, live)
			if why = errors.Join(wrong, why); why != nil {
				a.Notes = append(a.Notes, fmt.Sprintf("%s stays as it is: %s", nameOf(live), oneLine(why)))
				return nil
			}
			a.blocks, a.around = append(a.blocks, block), append(a.around, live)
			return nil
		})
		if apierrors.IsForbidden(err) {
			a.hidden = append(a.hidden, err.Error())
		} else if err != nil {
			return fmt.Errorf("listing each %s: %w", gvk.Kind, err)
		}
	}
	return nil
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// isOf reports whether a child that nothing controls is one of a Deployment.
func isOf(live client.Object, d *appsv1.Deployment) bool {
	if metav1.GetControllerOf(live) != nil {
		return false
	}
	switch live := live.(type) {
	case *autoscalingv2.HorizontalPodAutoscaler:
		return live.Spec.ScaleTargetRef.Kind == "Deployment" && live.Spec.ScaleTargetRef.Name == d.Name
	case *policyv1.PodDisruptionBudget:
		selector, err := metav1.LabelSelectorAsSelector(live.Spec.Selector)
		return err == nil && selector.Matches(labels.Set(d.Spec.Template.Labels))
	}
	return false
}

// blockOf returns the block of an object of which the operator makes what an autoscaler, or a budget, of a Deployment
// says already, or why there is none.
func blockOf(kind *kinds.Kind, d *appsv1.Deployment, live client.Object) (*modelv1.Children, error) {
	block := &modelv1.Children{}
	switch live := live.(type) {
	case *autoscalingv2.HorizontalPodAutoscaler:
		spec := live.DeepCopy().Spec
		block.Autoscaling = &modelv1.Autoscaling{MinReplicas: spec.MinReplicas, MaxReplicas: spec.MaxReplicas, Metrics: spec.Metrics, Behavior: spec.Behavior}
	case *policyv1.PodDisruptionBudget:
		block.Disruption = &modelv1.Disruption{MaxUnavailable: live.Spec.MaxUnavailable, MinAvailable: live.Spec.MinAvailable}
	}
	switch {
	case live.GetName() != d.Name:
		return nil, fmt.Errorf("that of an object has its name, %s", d.Name)
	case live.GetDeletionTimestamp() != nil:
		return nil, errors.New("it is being deleted")
	}
	o := &children.Object{Children: block, Owner: kind.GVK, Meta: metav1.ObjectMeta{Name: d.Name}, Selector: d.Spec.Selector.MatchLabels, Replicas: ptr.Deref(d.Spec.Replicas, 1)}
	if errs := children.Validate(field.NewPath("spec"), o); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	desired := children.Of(o)
	if len(desired) == 0 {
		return nil, errors.New("an object of one replica has none, because it would keep each node from being drained")
	}
	return block, says(desired[0], live, o.Replicas)
}

// says returns an error unless the child that the operator builds says of a number of replicas what a live one does.
func says(desired, live client.Object, replicas int32) error {
	switch live := live.(type) {
	case *autoscalingv2.HorizontalPodAutoscaler:
		want := desired.(*autoscalingv2.HorizontalPodAutoscaler).Spec
		want.ScaleTargetRef = live.Spec.ScaleTargetRef
		if !equality.Semantic.DeepEqual(want, live.Spec) {
			return errors.New("spec.autoscaling would scale otherwise")
		}
	case *policyv1.PodDisruptionBudget:
		want := desired.(*policyv1.PodDisruptionBudget).Spec
		switch policy := live.Spec.UnhealthyPodEvictionPolicy; {
		case !equality.Semantic.DeepEqual(want.Selector, live.Spec.Selector):
			return errors.New("it has another selector than the Deployment")
		case policy != nil && *policy != *want.UnhealthyPodEvictionPolicy:
			return fmt.Errorf("its unhealthyPodEvictionPolicy is %s, and that of an object always %s", *policy, *want.UnhealthyPodEvictionPolicy)
		case unavailable(&want, replicas) != unavailable(&live.Spec, replicas):
			return fmt.Errorf("it lets %d of %d pods go, and spec.disruption %d", unavailable(&live.Spec, replicas), replicas, unavailable(&want, replicas))
		}
	}
	return nil
}

// unavailable returns how many of a number of pods a budget lets go, as its controller does.
func unavailable(spec *policyv1.PodDisruptionBudgetSpec, replicas int32) int {
	scaled := func(of *intstr.IntOrString) int {
		number, _ := intstr.GetScaledValueFromIntOrPercent(of, int(replicas), true) // The API server stores no other.
		return number
	}
	if spec.MinAvailable != nil {
		return max(int(replicas)-scaled(spec.MinAvailable), 0)
	}
	return scaled(spec.MaxUnavailable)
}

// match sets around to the children that the operator builds, and returns these. Those that an object which exists does
// not say stay, with a note.
func (a *Adoption) match(desired []client.Object, replicas int32) (out []client.Object) {
	a.around = slices.DeleteFunc(a.around, func(live client.Object) bool {
		i := slices.IndexFunc(desired, func(d client.Object) bool { return isOptional(d) && render.KindOf(d) == render.KindOf(live) })
		why := errors.New("the object that exists has no block for it")
		if i >= 0 {
			why = says(desired[i], live, replicas)
		}
		if why == nil {
			out = append(out, desired[i])
		} else {
			a.Notes = append(a.Notes, fmt.Sprintf("%s stays as it is: %s", nameOf(live), why))
		}
		return why != nil
	})
	return out
}

func nameOf(live client.Object) string {
	return strings.ToLower(render.KindOf(live)) + "/" + live.GetName()
}

// keepReplicas sets the number of pods that a paused object with an autoscaler begins with to that of the Deployment:
// until the autoscaler is taken, it may scale the Deployment.
func (a *Adoption) keepReplicas(stored *unstructured.Unstructured, d *appsv1.Deployment) error {
	_, scaled, _ := unstructured.NestedFieldNoCopy(stored.Object, "spec", "autoscaling")
	if !scaled || !kinds.IsPaused(stored) {
		return nil
	}
	had, _, _ := unstructured.NestedInt64(stored.Object, "spec", "replicas")
	a.replicas = int64(ptr.Deref(d.Spec.Replicas, 1))
	a.rescale = had != a.replicas && !metav1.IsControlledBy(d, stored)
	return unstructured.SetNestedField(stored.Object, a.replicas, "spec", "replicas")
}

// setReplicas sets the replicas of the object to those of the Deployment, which is taken only if they are still these.
func (a *Adoption) setReplicas(ctx context.Context, c client.Client) error {
	if !a.rescale {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"replicas":%d}}`, a.Object.GetUID(), a.replicas)
	if err := c.Patch(ctx, a.Object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(a.FieldManager)); err != nil {
		return fmt.Errorf("setting spec.replicas of %s: %w", nameOf(a.Object), err)
	}
	return nil
}

// addBlocks sets the blocks of an object to create.
func (a *Adoption) addBlocks(object *unstructured.Unstructured) error {
	if object == nil {
		return nil
	}
	for _, block := range a.blocks {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(block)
		if err != nil {
			return err
		}
		maps.Copy(object.Object["spec"].(map[string]any), fields)
	}
	return nil
}

// replaced adds an optional child, whose spec becomes at once, with its owner, the one that the operator applies: an
// autoscaler never acts on the Deployment while the operator does, and a budget cannot have both of its bounds.
func (a *Adoption) replaced(ctx context.Context, desired, live client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return err
	}
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": content["spec"]}})
	if err != nil {
		return err
	}
	after := live.DeepCopyObject().(client.Object)
	if err := a.Client.Patch(ctx, after, client.RawPatch(types.JSONPatchType, patch), client.DryRunAll, client.FieldOwner(a.FieldManager)); err != nil {
		return fmt.Errorf("the API server would refuse what the operator applies: %w", err)
	}
	after.SetLabels(labels.Merge(live.GetLabels(), desired.GetLabels()))
	diff, err := render.Diff(render.NameOf(live), live, after)
	a.Diff += diff
	a.children = append(a.children, child{live, after, content["spec"]})
	return err
}
