// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uniteddeployment reconciles UnitedDeployments: each holds the replica count of an
// existing Deployment.
package uniteddeployment

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/freeze"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/controller/schedules"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/kinds/uniteddeployment"
)

// +kubebuilder:rbac:groups=extension.k8s.io,resources=uniteddeployments,verbs=list;watch
// +kubebuilder:rbac:groups=extension.k8s.io,resources=uniteddeployments/status,verbs=patch
// +kubebuilder:rbac:groups=extension.k8s.io,resources=uniteddeployments/scale,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments/scale,verbs=patch
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=list;watch

var kind = extensionv1.SchemeGroupVersion.WithKind("UnitedDeployment")

// reasonScaled is the reason of the event for a Deployment that was scaled.
const reasonScaled = "Scaled"

// Reconciler reconciles UnitedDeployments.
type Reconciler struct {
	client client.Client
	// live reads who else scales a Deployment, which the cache does not have.
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	// rivals are the UnitedDeployments of a Deployment, autoscalers those that scale it.
	rivals      trigger.Target[*extensionv1.UnitedDeployment]
	autoscalers trigger.Target[*autoscalingv2.HorizontalPodAutoscaler]
	schedules   schedules.Step
}

// New returns a reconciler that reads and writes with a client, and emits its events with a
// recorder. Its reads work without the indexes that SetupWithManager adds, and list more then.
func New(c client.Client, recorder events.EventRecorder, clk clock.PassiveClock) *Reconciler {
	return &Reconciler{
		client: c, live: c, recorder: recorder, clock: clk,
		schedules: schedules.Step{Client: c, Recorder: recorder, Clock: clk},
		rivals: trigger.Target[*extensionv1.UnitedDeployment]{
			Client: c, List: func() client.ObjectList { return &extensionv1.UnitedDeploymentList{} }, Name: heldDeployment,
		},
		autoscalers: trigger.Target[*autoscalingv2.HorizontalPodAutoscaler]{
			Client: c, List: func() client.ObjectList { return &autoscalingv2.HorizontalPodAutoscalerList{} }, Name: scaledDeployment,
		},
	}
}

// SetupWithManager adds the controller for UnitedDeployments to a manager.
func SetupWithManager(mgr manager.Manager, shared workload.Shared) error {
	recorder := mgr.GetEventRecorder(apply.FieldManager)
	r := New(mgr.GetClient(), recorder, shared.Clock)
	r.live = mgr.GetAPIReader()
	r.schedules.Freeze = freeze.Reader{Live: mgr.GetAPIReader()}
	ctx, indexer := context.Background(), mgr.GetFieldIndexer()
	if err := errors.Join(r.rivals.Index(ctx, indexer), r.autoscalers.Index(ctx, indexer), shared.IndexAutoscalers()); err != nil {
		return fmt.Errorf("indexing UnitedDeployments and HorizontalPodAutoscalers by their Deployment: %w", err)
	}
	return r.watch(mgr).Complete(status.NewReconciler(r.client, recorder, r, status.Options{Clock: shared.Clock}))
}

// watch watches UnitedDeployments and everything that can hold or change their Deployments.
// A UnitedDeployment or an autoscaler that is created, deleted or gets another target
// concerns the UnitedDeployments of both targets.
func (r *Reconciler) watch(mgr manager.Manager) *builder.Builder {
	return builder.ControllerManagedBy(mgr).
		Named("uniteddeployment").
		For(&extensionv1.UnitedDeployment{}, trigger.Changed()).
		Watches(&extensionv1.UnitedDeployment{}, trigger.EnqueueRivals(&r.rivals, &r.rivals), builder.WithPredicates(r.rivals.Retargeted())).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, trigger.EnqueueRivals(&r.rivals, &r.autoscalers), builder.WithPredicates(r.autoscalers.Retargeted())).
		Watches(&appsv1.Deployment{}, r.rivals.EnqueueNamed(), trigger.Changed()).
		WithOptions(trigger.Options())
}

// Reconcile sets the replica count of the Deployment, unless the Deployment is missing or
// another object holds its replica count, and sets the status.
func (r *Reconciler) Reconcile(ctx context.Context, ud *extensionv1.UnitedDeployment, writer *status.Writer) (reconcile.Result, error) {
	errs := uniteddeployment.Validate(ud)
	target, holder, err := r.observe(ctx, ud)
	if err != nil {
		return reconcile.Result{}, err
	}
	scaled, wake, scaling := r.schedules.Scale(ctx, &schedules.Object{
		Object: ud, Kind: kind, Schedules: ud.Spec.Schedules, Replicas: ptr.Deref(ud.Spec.Replicas, 0), Status: &ud.Status.Schedule,
		Held: len(errs) > 0 || holder != "", Writer: writer,
	})
	if scaled {
		return reconcile.Result{}, nil
	}
	readiness, err := r.hold(ctx, ud, writer, target, decide(ud, errs, target, holder))
	if scaling != nil && err == nil && (readiness == nil || !readiness.Stalled) {
		readiness, err = apply.ReadinessOf(scaling)
	}
	r.updateStatus(ud, target, readiness)
	result, err := apply.Result(err)
	result.RequeueAfter = trigger.Sooner(result.RequeueAfter, wake)
	return result, err
}

// hold scales the Deployment, unless there already is a readiness, and the limit allows it.
func (r *Reconciler) hold(
	ctx context.Context, ud *extensionv1.UnitedDeployment, writer *status.Writer, target *appsv1.Deployment, readiness *status.Readiness,
) (*status.Readiness, error) {
	if contested := writer.Owner.Contested(); readiness == nil && (contested == nil || !contested.Exhausted) {
		return r.scale(ctx, ud, writer, target, contested)
	} else if contested != nil && (readiness == nil || !readiness.Stalled) {
		return apply.ReadinessOf(contested)
	}
	return readiness, nil
}

// observe reads, from the cache, the Deployment (nil if it is missing) and what else holds
// its replica count.
func (r *Reconciler) observe(ctx context.Context, ud *extensionv1.UnitedDeployment) (target *appsv1.Deployment, holder string, err error) {
	if ud.Spec.DeploymentName == "" {
		return nil, "", nil // Validate refuses it.
	}
	target, err = workload.Target(ctx, r.client, ud.Namespace, ud.Spec.DeploymentName)
	if target == nil || err != nil {
		return nil, "", err
	}
	if target.Spec.Selector, err = cache.Selector(ctx, r.live, target); err != nil {
		return nil, "", err
	}
	holder, err = r.holder(ctx, ud, target)
	return target, holder, err
}

// holder returns the other controller that sets the replicas of ud's Deployment and what
// to do, "" if there is none. In this order: the ModelBox or App that is the controller
// of the Deployment, a HorizontalPodAutoscaler that scales it, an older UnitedDeployment.
func (r *Reconciler) holder(ctx context.Context, ud *extensionv1.UnitedDeployment, target *appsv1.Deployment) (string, error) {
	scaler, _, err := r.autoscalers.Oldest(ctx, target.Namespace, target.Name)
	if err != nil {
		return "", fmt.Errorf("reading HorizontalPodAutoscalers: %w", err)
	}
	rival, _, err := r.rivals.Oldest(ctx, target.Namespace, target.Name)
	if err != nil {
		return "", fmt.Errorf("reading UnitedDeployments: %w", err)
	}
	owner := ptr.Deref(metav1.GetControllerOfNoCopy(target), metav1.OwnerReference{})
	group := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group
	switch {
	case group == modelv1.GroupName || group == appv1.GroupName:
		return fmt.Sprintf("%s %q controls Deployment %q and sets its replicas; scale it instead", owner.Kind, owner.Name, target.Name), nil
	case scaler != nil:
		return fmt.Sprintf("HorizontalPodAutoscaler %q scales Deployment %q; delete one of them", scaler.Name, target.Name), nil
	case rival != nil && rival.UID != ud.UID && trigger.Older(rival, ud):
		return fmt.Sprintf("UnitedDeployment %q is older and scales Deployment %q; delete one of them", rival.Name, target.Name), nil
	}
	return "", nil
}

// scale is the only write to the Deployment: the replica count, through /scale, with the
// resourceVersion of the Deployment that was read as precondition. The status that is
// written ahead has the resourceVersion of the UnitedDeployment as precondition, because a
// Scale has no annotation that could name the generation it was written for. The readiness
// is nil if the write has to be retried, and stays what it is while the count is contested.
func (r *Reconciler) scale(
	ctx context.Context, ud *extensionv1.UnitedDeployment, writer *status.Writer, target *appsv1.Deployment, contested *limit.ContestedError,
) (*status.Readiness, error) {
	readiness := status.Progressing("Deployment %q is being scaled from %d to %d",
		target.Name, ptr.Deref(target.Spec.Replicas, 1), *ud.Spec.Replicas)
	if contested != nil {
		readiness = status.NewStalled(status.ReasonContested, contested.Error())
	}
	r.updateStatus(ud, target, &readiness)
	if err := writer.WriteFirst(ctx); err != nil {
		return nil, err
	}
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"replicas":%d}}`,
		target.UID, target.ResourceVersion, *ud.Spec.Replicas)
	named := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: target.Namespace, Name: target.Name}}
	err := r.client.SubResource("scale").Patch(ctx, named, client.RawPatch(types.MergePatchType, body),
		client.FieldOwner(apply.FieldManager), client.DisableReadYourWritesConsistency, writer.Owner)
	if denied, ok := errors.AsType[*limit.ContestedError](err); ok {
		writer.Owner.SetManager(denied, "spec.replicas", r.scaler(ctx, target))
	}
	switch {
	case err == nil && contested != nil:
		err = contested
	case err == nil:
		r.recorder.Eventf(ud, target, corev1.EventTypeNormal, reasonScaled, "Scale",
			"Deployment %q was scaled from %d to %d", target.Name, ptr.Deref(target.Spec.Replicas, 1), *ud.Spec.Replicas)
	}
	return apply.ReadinessOf(apply.Refused("scaling", target, err))
}

// scaler returns the field manager that changed the Deployment last, "" if it is not known.
func (r *Reconciler) scaler(ctx context.Context, target *appsv1.Deployment) string {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(target), live); err != nil {
		return ""
	}
	return limit.Manager(live)
}

// updateStatus sets the status to the observed state. The conditions stay as they are if
// readiness is nil.
func (r *Reconciler) updateStatus(ud *extensionv1.UnitedDeployment, target *appsv1.Deployment, readiness *status.Readiness) {
	setReplicas(&ud.Status, target)
	if readiness == nil {
		return
	}
	ud.Status.ObservedGeneration = ud.Generation
	readiness.SetConditions(&ud.Status.Conditions, ud.Generation, metav1.NewTime(r.clock.Now()))
}

// decide returns the readiness of a UnitedDeployment for which nothing is to be written, nil
// if the Deployment is to be scaled: the replica count differs and nothing else holds it.
// errs are the errors of the spec. It is pure.
func decide(ud *extensionv1.UnitedDeployment, errs field.ErrorList, target *appsv1.Deployment, holder string) *status.Readiness {
	var readiness status.Readiness
	switch {
	case len(errs) > 0:
		readiness = status.NewStalled(status.ReasonInvalidSpec, rules.FormatErrors(errs))
	case target == nil:
		readiness = workload.TargetNotFound(ud.Spec.DeploymentName)
	case holder != "":
		readiness = status.NewStalled(status.ReasonConflict, holder)
	case target.DeletionTimestamp != nil:
		readiness = status.NewReconciling(status.ReasonWaitingForDeletion, fmt.Sprintf("Deployment %q is being deleted", target.Name))
	case ptr.Deref(target.Spec.Replicas, 1) != *ud.Spec.Replicas:
		return nil
	default:
		if readiness = workload.Scaled(target); readiness.Ready {
			readiness.Message = fmt.Sprintf("Deployment %q is held at %d replicas", target.Name, *ud.Spec.Replicas)
		}
	}
	return &readiness
}

// setReplicas copies the counters of a Deployment; they are 0 if it is missing.
func setReplicas(into *extensionv1.UnitedDeploymentStatus, target *appsv1.Deployment) {
	if target == nil {
		target = &appsv1.Deployment{}
	}
	into.Replicas = target.Status.Replicas
	into.ReadyReplicas = target.Status.ReadyReplicas
	into.AvailableReplicas = target.Status.AvailableReplicas
	if into.Selector = ""; target.Spec.Selector != nil {
		into.Selector = metav1.FormatLabelSelector(target.Spec.Selector)
	}
}

// scaledDeployment returns the name of the Deployment that an autoscaler scales, "" if it
// scales something else.
func scaledDeployment(scaler *autoscalingv2.HorizontalPodAutoscaler) string {
	target := scaler.Spec.ScaleTargetRef
	if schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).GroupKind() != appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind() {
		return ""
	}
	return target.Name
}

// heldDeployment returns the name of the Deployment whose replicas a UnitedDeployment holds,
// "" if it is being deleted and holds none.
func heldDeployment(ud *extensionv1.UnitedDeployment) string {
	if ud.DeletionTimestamp != nil {
		return ""
	}
	return ud.Spec.DeploymentName
}
