// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/configuration"
	"github.com/modelbox-operator/modelbox-operator/controller/freeze"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/schedules"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/controller/watches"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// Reconciler has the steps that are the same for all kinds with pods: Apply and UpdateStatus.
type Reconciler struct {
	Writer apply.Writer
	Clock  clock.PassiveClock
	// Schedules sets the replicas of the object at scheduled times.
	Schedules schedules.Step
	// Problems finds out why the pods are not available; it may be nil.
	Problems *problems.Diagnoser
	// Configuration is what the objects with spec.restartOnChange refer to; nil if that has no effect.
	Configuration *configuration.Sources
	Freeze        freeze.Reader
	// Turns bounds the rollouts of changed configuration of all kinds; nil is no bound.
	Turns *configuration.Turns
	// Watches are the informers of the children of spec.disruption and of the other blocks.
	Watches *watches.Watches

	kind string
}

// Setup adds the controller of a kind to a manager, and sets its steps, which are a part of reconciler, but for Turns and Watches.
// It reconciles an object when the object or its children change.
func Setup[T status.Object](
	mgr manager.Manager, clk clock.PassiveClock, kind schema.GroupVersionKind, obj T,
	reconciler reconcile.ObjectReconciler[T], steps *Reconciler, children ...client.Object,
) error {
	*steps = Reconciler{
		Writer: apply.NewWriter(mgr), Clock: clk, Problems: &problems.Diagnoser{Reader: mgr.GetAPIReader(), Clock: clk},
		Freeze: freeze.Reader{Live: mgr.GetAPIReader()}, Turns: steps.Turns, Watches: steps.Watches, kind: kind.Kind,
	}
	steps.Schedules = schedules.Step{Client: mgr.GetClient(), Recorder: steps.Writer.Recorder, Clock: clk, Freeze: steps.Freeze}
	watches := builder.ControllerManagedBy(mgr).
		Named(strings.ToLower(kind.Kind)).
		For(obj, trigger.Changed()).
		WithOptions(trigger.Options())
	// Children have the name of their owner. That of an owner reference would not do: an object of another owner that
	// prevents the creation of a child is seen when it is created and when it is deleted.
	for _, child := range children {
		watches.Watches(child, &handler.EnqueueRequestForObject{}, builder.WithPredicates(trigger.ChildChanged(kind.GroupKind())))
	}
	controller, err := watches.Build(status.Recorded(mgr.GetClient(), steps.Writer.Recorder, reconciler, status.Options{OnGone: steps.forget}))
	if err != nil {
		return err
	}
	steps.Configuration = configuration.New(mgr, controller, clk)
	if steps.Watches == nil {
		return nil
	}
	return steps.Watches.Add(mgr, clk, controller, kind.GroupKind())
}

// forget removes what is held of an owner that was deleted.
func (r *Reconciler) forget(owner types.NamespacedName) {
	r.Problems.Forget(owner)
	r.Configuration.Forget(owner)
	r.Turns.Leave(r.subject(owner))
}

// Children are the desired and the observed children of one object, and the part of its status
// that is the same for all kinds with pods.
type Children struct {
	*Workload
	// Pods is the child that runs the pods, a Deployment or a DaemonSet.
	Pods *apply.Child
	// Service is nil for a kind that has none.
	Service *apply.Child
	// Observe returns the observed state of Pods, and copies its counters to the status of the owner.
	Observe func() Observed

	ObservedGeneration *int64
	Conditions         *[]metav1.Condition
	Problems           *[]modelv1.Problem
	// Stored is the part of the status that says what was written last.
	Stored *modelv1.ChildrenStatus

	surroundings surroundings
	// configured is what Apply found out of the configuration.
	configured configured
	// later is after which time to call Apply again, 0 for never.
	later time.Duration
}

// Observed is the observed state of the child that runs the pods.
type Observed struct {
	// Kind is that of the child.
	Kind string
	// Progress is the readiness of the owner after its children have been applied.
	Progress status.Readiness
	// Availability is that of the owner while the child exists.
	Availability metav1.Condition
	// Workload is the child as the problems of its pods are read from it.
	Workload problems.Workload
}

// Desired returns the desired children of a workload, whose observed state goes to into. errs
// are the errors of its spec. If these leave open what the children have to be, it returns a
// status.Readiness, and children without a desired state. It is pure.
func Desired(w *Workload, into *modelv1.WorkloadStatus, errs field.ErrorList) (*Children, error) {
	children := &Children{
		Workload: w, Pods: &apply.Child{Live: &appsv1.Deployment{}}, Service: &apply.Child{Live: &corev1.Service{}},
		ObservedGeneration: &into.ObservedGeneration, Conditions: &into.Conditions, Problems: &into.Problems,
		Stored: &into.ChildrenStatus,
	}
	children.Observe = func() Observed { return observe(w, children, into) }
	if err := Buildable(errs); err != nil {
		return children, err
	}
	deployment, err := w.Deployment()
	if err != nil {
		return children, err
	}
	children.Pods.Desired = deployment
	if len(w.MatchLabels) > 0 {
		children.Pods.Expect = append(children.Pods.Expect, apply.Selector(w.MatchLabels))
	}
	if service := w.Service(); service != nil {
		children.Service.Desired = service
	}
	children.surroundings.object = w.OptionalChildren()
	return children, nil
}

// all returns the children in the order in which they are written.
func (c *Children) all() []*apply.Child {
	if c.Service == nil {
		return []*apply.Child{c.Pods}
	}
	return append([]*apply.Child{c.Pods, c.Service}, c.surroundings.all()...)
}

// Run is the part of a reconcile that is the same for all kinds with a Deployment: it writes the replicas of a scheduled time or
// applies the children, and sets the status, which into is a part of. errs are the errors of the spec. It returns the
// children if they have been applied.
func (r *Reconciler) Run(
	ctx context.Context, w *Workload, into *modelv1.WorkloadStatus, at []modelv1.Schedule, errs field.ErrorList,
) (applied *Children, result reconcile.Result, err error) {
	scaled, wake, scaling := r.Schedules.Scale(ctx, &schedules.Object{
		Object: w.Owner, Kind: w.OwnerKind, Schedules: at, Replicas: *w.Replicas, Status: &into.Schedule, Held: w.Paused,
	})
	if scaled {
		return nil, reconcile.Result{}, nil
	}
	children, err := Desired(w, into, errs)
	if err == nil {
		err = r.Apply(ctx, children)
	}
	if err == nil {
		applied = children
	}
	result, err = r.UpdateStatus(ctx, children, errs, cmp.Or(err, scaling))
	result.RequeueAfter = trigger.Sooner(result.RequeueAfter, wake)
	return applied, result, err
}

// Apply creates, applies or deletes the children; see apply.Writer for its errors.
func (r *Reconciler) Apply(ctx context.Context, c *Children) error {
	if err := c.surroundings.watch(ctx, r.Watches); err != nil {
		return err
	}
	if err := c.surroundings.rivals(ctx, r.Writer.Client, c.Owner); err != nil {
		return err
	}
	owner := c.owner()
	if err := r.Writer.Read(ctx, owner, c.all()...); err != nil {
		return err
	}
	if err := c.keepFetcher(); err != nil {
		return err
	}
	if err := r.configure(ctx, c); err != nil {
		return err
	}
	later, err := r.Writer.Write(ctx, owner, c.all()...)
	c.Stored.Children, c.later = owner.Children, later
	return err
}

// owner returns the owner with what its status says of the children.
func (c *Children) owner() *apply.Owner {
	ready := meta.FindStatusCondition(*c.Conditions, status.ConditionReady)
	return &apply.Owner{
		Object: c.Owner, Children: c.Stored.Children, Paused: c.Paused,
		Ready: ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == c.Owner.GetGeneration(),
	}
}

// keepFetcher keeps what fetches a model in a Deployment that exists.
func (c *Children) keepFetcher() error {
	if desired, ok := c.Pods.Desired.(*appsv1.Deployment); ok && c.Pods.Exists() && len(c.Models) > 0 {
		return keepFetcher(c.Workload, desired)
	}
	return nil
}

// UpdateStatus sets the status of the owner to the observed state. errs are the errors of its
// spec, err is the error of Apply, or of the function that returned the children. It returns the
// result of the reconcile.
func (r *Reconciler) UpdateStatus(ctx context.Context, c *Children, errs field.ErrorList, err error) (reconcile.Result, error) {
	refused, err := apply.ReadinessOf(invalidSpec(err))
	switch {
	case refused != nil:
		*c.Problems = nil
		if err := r.Writer.Observe(ctx, c.Owner, c.all()...); err != nil {
			return reconcile.Result{}, err
		}
	case err != nil:
		return apply.Result(err)
	}
	observed := c.Observe()
	var again time.Duration
	if refused == nil {
		again = r.diagnose(ctx, c, &observed)
	} else {
		observed.Progress = *refused
	}
	r.setConditions(c, &observed, refused == nil, errs)
	result, err := apply.Result(err)
	result.RequeueAfter = trigger.Sooner(trigger.Sooner(max(result.RequeueAfter, again), c.configured.again), c.surroundings.again())
	result.RequeueAfter = trigger.Sooner(result.RequeueAfter, c.later)
	return result, err
}

// diagnose adds to the progress of an owner whose children have been applied why its pods are not available, and
// sets its problems. Its conditions are still the stored ones. After the time that it returns, the
// pods are to be read again; 0 is never.
func (r *Reconciler) diagnose(ctx context.Context, c *Children, observed *Observed) (again time.Duration) {
	subject := &problems.Subject{Owner: c.Owner, Workload: observed.Workload, Conditions: *c.Conditions, Problems: *c.Problems}
	// A readiness that is neither Reconciling nor Stalled has another cause than the pods.
	skip := c.Paused || !observed.Progress.Reconciling && !observed.Progress.Stalled
	observed.Progress, *c.Problems, again = r.Problems.Diagnose(ctx, subject, observed.Progress, skip)
	return again
}

// setConditions sets the conditions of an owner. applied says that the children have their
// desired state.
func (r *Reconciler) setConditions(c *Children, observed *Observed, applied bool, errs field.ErrorList) {
	generation, now := c.Owner.GetGeneration(), metav1.NewTime(r.Clock.Now())
	*c.ObservedGeneration = generation
	described := observed.Progress.WithSpecErrors(errs)
	described.SetNotReady(status.ReasonRewritten, apply.Rewritten(c.Stored.Children), true)
	described.SetNotReady(c.configured.reason, c.configured.waiting, false)
	described.AppendMessage(c.configured.note)
	described.AppendMessage(c.surroundings.note())
	described.SetConditions(c.Conditions, generation, now)
	status.SetPaused(c.Conditions, c.Paused, generation, now)
	available := observed.Availability
	if !c.Pods.Exists() {
		available = status.NoChild(observed.Kind, observed.Progress)
	}
	status.SetAvailable(c.Conditions, available, applied && observed.Workload.Observed, generation, now)
}

// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete

// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete

// surroundings are the children of the blocks of a spec (children.Blocks).
type surroundings struct {
	// object is what the blocks are made of; nil for a kind without blocks, and if the spec leaves that open.
	object *children.Object
	// children are those that watch has found to be desired or to be looked for, and whose informers run.
	children []blockChild
	// notes say which of them cannot be made, or what their status says.
	notes []string
}

type blockChild struct {
	*children.Block
	*apply.Child
}

// watch sets the children, and starts the informers of those that are desired. The other ones are looked for, to delete
// them, only if an informer runs already. It sends no request for an object without blocks.
func (s *surroundings) watch(ctx context.Context, w *watches.Watches) error {
	if s.object == nil {
		return nil
	}
	for _, block := range children.Blocks {
		desired := block.Desired(s.object)
		if desired == nil && !w.Runs(block) {
			continue
		}
		if desired != nil {
			err := w.Ensure(ctx, block)
			if unavailable, ok := errors.AsType[*watches.UnavailableError](err); ok {
				s.notes = append(s.notes, unavailable.Error())
				continue
			}
			if err != nil {
				return err
			}
		}
		s.children = append(s.children, blockChild{block, &apply.Child{Desired: desired, Live: block.New()}})
	}
	return nil
}

// rivals adds a note on an autoscaler that scales the owner, too. It is found in the cache.
func (s *surroundings) rivals(ctx context.Context, c client.Reader, owner client.Object) error {
	if s.object == nil || s.object.Autoscaling == nil {
		return nil
	}
	all, err := schedules.Autoscalers(ctx, c, owner, s.object.Owner.GroupKind())
	for i := range all {
		if controller := metav1.GetControllerOfNoCopy(&all[i]); !metav1.IsControlledBy(&all[i], owner) && !s.object.OwnsAutoscaler(controller) {
			s.notes = append(s.notes, fmt.Sprintf("HorizontalPodAutoscaler %q scales it as well; delete it or the ScaledObject that it is of, or remove spec.autoscaling",
				all[i].Name))
			break
		}
	}
	return err
}

// all returns the children that may be read and written.
func (s *surroundings) all() []*apply.Child {
	var out []*apply.Child
	for i := range s.children {
		out = append(out, s.children[i].Child)
	}
	return out
}

// note returns what the message of Ready says of the children.
func (s *surroundings) note() string {
	notes := slices.Clone(s.notes)
	for i := range s.children {
		if child := &s.children[i]; child.Report != nil && child.Child.Desired != nil && child.Exists() {
			if note := child.Report(child.Live); note != "" {
				notes = append(notes, note)
			}
		}
		if child := &s.children[i]; child.Note != nil && child.Child.Desired != nil {
			if note := child.Note(s.object); note != "" {
				notes = append(notes, note)
			}
		}
	}
	return strings.Join(notes, "; ")
}

// status sets what the status of the owner has of the children. It leaves it alone if the spec leaves open what they
// have to be.
func (s *surroundings) status(into *modelv1.WorkloadStatus) {
	if s.object == nil {
		return
	}
	into.URL = ""
	for i := range s.children {
		if child := &s.children[i]; child.Status != nil && child.Child.Desired != nil && child.Exists() {
			child.Status(s.object, child.Live, into)
		}
	}
}

// again returns after which time to look for a kind that is not available, 0 for never. An informer can stop without
// an event, so an object with blocks is looked at in any case, which costs no request.
func (s *surroundings) again() time.Duration {
	if len(s.notes) > 0 || slices.ContainsFunc(s.children, func(c blockChild) bool { return c.Child.Desired != nil }) {
		return trigger.Longest
	}
	return 0
}

// The reasons of Ready while changed configuration is not rolled out.
const (
	// reasonWaitingForWindow means that no window of the spec is open.
	reasonWaitingForWindow = "WaitingForWindow"
	// reasonWaitingForTurn means that other objects have their turn first.
	reasonWaitingForTurn = "WaitingForTurn"
)

// configured is what is found out of the configuration of an object, for its status.
type configured struct {
	// note says what does not exist or may not be read, waiting which rollout waits, and for what, with the reason of Ready.
	note, waiting, reason string
	// again is after which time to look again, 0 for never.
	again time.Duration
}

// configure makes the annotation of the configuration a part of the desired pod template, if the object has
// spec.restartOnChange. The live annotation is the only state: while a rollout waits, the desired one is the live one.
func (r *Reconciler) configure(ctx context.Context, c *Children) error {
	owner := client.ObjectKeyFromObject(c.Owner)
	if r.Configuration == nil || c.RestartOnChange != modelv1.RestartOnChangeReferenced {
		r.Configuration.Forget(owner)
		r.Turns.Leave(r.subject(owner))
		c.Stored.Configuration = ""
		return nil
	}
	template := kinds.PodTemplate(c.Pods.Desired)
	refs := workload.References(template)
	observed, err := r.Configuration.Observe(ctx, owner, refs)
	if err != nil {
		return err
	}
	c.configured = configured{note: observed.Note, again: observed.Again}
	live, err := r.liveConfiguration(ctx, c)
	if err != nil {
		return err
	}
	value := observed.Digests.Annotation(c.Owner.GetUID(), refs, live, false)
	if c.Pods.Exists() {
		if value, err = r.hold(ctx, c, value, observed.Digests.Annotation(c.Owner.GetUID(), refs, live, true)); err != nil {
			return err
		}
		c.Pods.Expect = append(c.Pods.Expect, apply.Configuration(live))
	}
	setConfiguration(template, value)
	c.Stored.Configuration = value
	if len(value) > modelv1.MaxConfiguration {
		c.Stored.Configuration = "" // It is read from the child each time.
	}
	return nil
}

// liveConfiguration returns the annotation that the pod template of the child has now: from status if the cache,
// which has its hash, says that this is it, and otherwise from the API server.
func (r *Reconciler) liveConfiguration(ctx context.Context, c *Children) (string, error) {
	if !c.Pods.Exists() {
		return "", nil
	}
	held := kinds.PodTemplate(c.Pods.Live).Annotations[api.AnnotationConfiguration]
	if held == "" {
		return "", nil
	}
	if recorded := c.Stored.Configuration; cache.Holds(held, recorded) {
		return recorded, nil
	}
	live := kinds.NewOf(c.Pods.Live)
	if err := r.Writer.Live.Get(ctx, client.ObjectKeyFromObject(c.Owner), live); err != nil {
		return "", fmt.Errorf("reading the configuration in the pod template of %q: %w", c.Owner.GetName(), err)
	}
	return kinds.PodTemplate(live).Annotations[api.AnnotationConfiguration], nil
}

// hold returns the annotation to write: value, or held, which has nothing new, while the rollout of what has changed has to wait.
func (r *Reconciler) hold(ctx context.Context, c *Children, value, held string) (string, error) {
	if value == held {
		r.Turns.Leave(r.subject(client.ObjectKeyFromObject(c.Owner)))
		return value, nil
	}
	w, err := r.waits(ctx, c)
	if err != nil || w.reason == "" {
		return value, err
	}
	changed := configuration.Changed(held, value)
	c.configured.reason = w.reason
	c.configured.waiting = fmt.Sprintf("the rollout of changed configuration (%s) waits: %s", strings.Join(changed[:min(len(changed), 3)], ", "), w.cause)
	c.configured.again = trigger.Sooner(c.configured.again, w.again)
	return held, nil
}

// wait is why a rollout of changed configuration does not happen now: the reason of Ready, a cause for its message, and
// after which time to look again, 0 for never. The zero wait is none.
type wait struct {
	reason, cause string
	again         time.Duration
}

// waits returns what a rollout waits for: a window, then the end of a freeze, and then its turn, which it takes last and only
// if it is going to be written.
func (r *Reconciler) waits(ctx context.Context, c *Children) (w wait, err error) {
	owner := r.subject(client.ObjectKeyFromObject(c.Owner))
	if w = closed(c.Windows, r.Clock.Now()); w.reason == "" {
		w, err = r.frozen(ctx, owner.Namespace)
	}
	if err != nil || w.reason != "" || c.Paused {
		r.Turns.Leave(owner)
		return w, err
	}
	position, again := r.Turns.Take(owner)
	if position == 0 {
		return wait{}, nil
	}
	cause := fmt.Sprintf("it is number %d in the queue of the controller, which begins %d in a minute", position, r.Turns.PerMinute)
	return wait{reasonWaitingForTurn, cause, min(again, trigger.Longest)}, nil
}

// subject returns an owner as one that waits for its turn.
func (r *Reconciler) subject(owner types.NamespacedName) configuration.Subject {
	return configuration.Subject{Kind: r.kind, NamespacedName: owner}
}

// closed returns the wait for the next window, which is none while one is open, or without windows. With windows that
// admission would refuse, when a rollout may happen is not known, so it waits for a change of the spec. It is pure.
func closed(spec modelv1.Windows, now time.Time) wait {
	parsed, err := windows.Parse(spec)
	if err != nil || len(windows.Validate(nil, spec)) > 0 {
		return wait{reason: reasonWaitingForWindow, cause: "spec.windows or spec.skipDates is invalid"}
	}
	if parsed.Open(now) {
		return wait{}
	}
	opens, ok := parsed.Opens(now)
	if !ok {
		return wait{reason: reasonWaitingForWindow, cause: "no window of spec.windows opens"}
	}
	return wait{reasonWaitingForWindow, "the next window opens at " + opens.Format(time.RFC3339), trigger.Until(opens, now)}
}

// frozen returns the wait for the end of the freeze of a namespace. It sends one request.
func (r *Reconciler) frozen(ctx context.Context, namespace string) (wait, error) {
	reason, frozen, err := r.Freeze.Frozen(ctx, namespace)
	switch {
	case apierrors.IsForbidden(err):
		reason = err.Error()
	case err != nil:
		return wait{}, err
	case !frozen:
		return wait{}, nil
	}
	return wait{status.ReasonFrozen, fmt.Sprintf("namespace %s is frozen (%s)", namespace, reason), freeze.Again}, nil
}

// setConfiguration sets the annotation of a pod template, which without references has none.
func setConfiguration(template *corev1.PodTemplateSpec, value string) {
	template.Annotations = maps.Clone(template.Annotations)
	if delete(template.Annotations, api.AnnotationConfiguration); value != "" {
		metav1.SetMetaDataAnnotation(&template.ObjectMeta, api.AnnotationConfiguration, value)
	}
}
