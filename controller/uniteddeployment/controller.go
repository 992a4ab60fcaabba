// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uniteddeployment holds the replica count of Deployments.
package uniteddeployment

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/webhook/uniteddeployment"
)

// +kubebuilder:rbac:groups=extension.k8s.io,resources=uniteddeployments,verbs=list;watch
// +kubebuilder:rbac:groups=extension.k8s.io,resources=uniteddeployments/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments/scale,verbs=patch
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles UnitedDeployments.
type Reconciler struct {
	Client client.Client
	Clock  clock.PassiveClock
}

// SetupWithManager adds the controller for UnitedDeployments to a manager.
func SetupWithManager(mgr manager.Manager, clk clock.PassiveClock) error {
	r := &Reconciler{Client: mgr.GetClient(), Clock: clk}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &extensionv1.UnitedDeployment{}, indexTarget, targetOf); err != nil {
		return fmt.Errorf("indexing UnitedDeployments by their Deployment: %w", err)
	}
	recorder := mgr.GetEventRecorder(apply.FieldManager)
	return r.watch(mgr).Complete(status.RecordedWithClaims(r.Client, recorder, r))
}

// Reconcile holds the Deployment's replica count, unless the Deployment is
// missing or somebody else holds it, and fills in the status.
func (r *Reconciler) Reconcile(ctx context.Context, ud *extensionv1.UnitedDeployment, claim status.Claim) (reconcile.Result, error) {
	target, holder, err := r.look(ctx, ud)
	if err != nil {
		return reconcile.Result{}, err
	}
	observe(target, &ud.Status)
	if errs := uniteddeployment.Validate(ud); len(errs) > 0 {
		r.conclude(ud, status.Stuck(status.ReasonInvalidSpec, status.Describe(errs)))
		return reconcile.Result{}, nil
	}
	verdict := decide(ud, target, holder)
	if verdict == nil {
		verdict, err = r.scale(ctx, ud, target, claim)
	}
	if verdict != nil {
		r.conclude(ud, *verdict)
	}
	return reconcile.Result{}, err
}

// look reads, from the cache, the target (nil if missing) and who else holds it.
func (r *Reconciler) look(ctx context.Context, ud *extensionv1.UnitedDeployment) (*appsv1.Deployment, string, error) {
	if ud.Spec.DeploymentName == "" {
		return nil, "", nil // Refused by Validate.
	}
	target := &appsv1.Deployment{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: ud.Namespace, Name: ud.Spec.DeploymentName}, target)
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading Deployment %q: %w", ud.Spec.DeploymentName, err)
	}
	scalers, rivals := &autoscalingv2.HorizontalPodAutoscalerList{}, &extensionv1.UnitedDeploymentList{}
	if err := r.Client.List(ctx, scalers, client.InNamespace(ud.Namespace)); err != nil {
		return nil, "", fmt.Errorf("listing HorizontalPodAutoscalers: %w", err)
	}
	sameTarget := client.MatchingFields{indexTarget: ud.Spec.DeploymentName}
	if err := r.Client.List(ctx, rivals, client.InNamespace(ud.Namespace), sameTarget); err != nil {
		return nil, "", fmt.Errorf("listing UnitedDeployments: %w", err)
	}
	return target, uniteddeployment.Holder(ud, target, scalers.Items, rivals.Items), nil
}

// scale is the one write on the Deployment: the count, through /scale, on the very
// version that was looked at. The resourceVersion makes a decision on a stale
// Deployment fail, and the claim one of a stale UnitedDeployment: a Scale takes no
// annotation that could tell whose count it is.
func (r *Reconciler) scale(ctx context.Context, ud *extensionv1.UnitedDeployment, target *appsv1.Deployment, claim status.Claim) (*status.Verdict, error) {
	r.conclude(ud, status.Underway(status.ReasonProgressing,
		fmt.Sprintf("Deployment %q is being scaled from %d to %d", target.Name, ptr.Deref(target.Spec.Replicas, 1), *ud.Spec.Replicas)))
	if err := claim(ctx); err != nil {
		return nil, err
	}
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"replicas":%d}}`,
		target.UID, target.ResourceVersion, *ud.Spec.Replicas)
	named := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: target.Namespace, Name: target.Name}}
	err := r.Client.SubResource("scale").Patch(ctx, named, client.RawPatch(types.MergePatchType, body),
		client.FieldOwner(apply.FieldManager), client.DisableReadYourWritesConsistency)
	return apply.Judge(apply.Refused("scaling", target, err))
}

func (r *Reconciler) conclude(ud *extensionv1.UnitedDeployment, verdict status.Verdict) {
	ud.Status.ObservedGeneration = ud.Generation
	verdict.Set(&ud.Status.Conditions, ud.Generation, metav1.NewTime(r.Clock.Now()))
}
