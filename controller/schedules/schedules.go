// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schedules sets the replicas of objects at the times of spec.schedules, which is the same
// for all kinds that have them.
//
// No goroutine and no timer holds a schedule: each reconcile computes from the spec, the status and
// the clock which scheduled time has passed last. If that is later than the one in status, two
// writes follow:
//
//   - status.schedule becomes that time, with the generation and the replicas of the object in pending. The
//     write has the resourceVersion of the object as precondition, like all writes of status.
//   - spec.replicas becomes its number, through the scale subresource, with the resourceVersion that the
//     first write returned as precondition.
//
// A write of status leaves the generation alone, and the second write increases it. So the next
// reconcile sees whether that one has happened, after a crash or a lost response too: it has not if
// the generation is still that of pending, or if it has increased by one and spec.replicas is still
// that of pending, because then the one change was another client's. In any other case the time
// counts as done, so that a number that another client has set since then stays. Of two leaders,
// one gets a conflict.
//
// After downtime only the time that passed last applies. Nothing moves back with the clock: a clock
// that was ahead for a while leaves a time in status that is as far ahead. Removing spec.schedules,
// and setting them again, ends that.
package schedules

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/freeze"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/kinds/schedules"
)

// fieldManager owns, in metadata.managedFields, a number of replicas that a schedule has set.
const fieldManager = "modelbox-schedule"

const reasonScaled = "Scaled"

// Step is what the reconcilers of all kinds with schedules do first.
type Step struct {
	Client   client.Client
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	Freeze   freeze.Reader
}

// Object is an object with schedules.
type Object struct {
	client.Object
	Kind      schema.GroupVersionKind
	Schedules []modelv1.Schedule
	// Replicas is spec.replicas, and Status is status.schedule.
	Replicas int32
	Status   **modelv1.ScheduleStatus
	// Held says that nothing may be written now: the object is paused, or another controller scales
	// its Deployment.
	Held bool
	// Writer is that of the object.
	Writer *status.Writer
}

// Scale sets status.schedule and, if a scheduled time has come, the replicas of the object. scaled
// says that they were written: the reconcile ends, because the change of the spec begins another
// one. Otherwise the object is to be reconciled again at the next scheduled time, after wake; 0 is
// never. The errors are those of apply.ReadinessOf. An object without schedules costs nothing.
func (s *Step) Scale(ctx context.Context, o *Object) (scaled bool, wake time.Duration, err error) {
	if len(o.Schedules) == 0 {
		*o.Status = nil
		return false, 0, nil
	}
	parsed, err := schedules.Parse(o.Schedules)
	if err != nil {
		return false, 0, nil //nolint:nilerr // The validation of the spec has this error too, and reports it.
	}
	if err = s.autoscaled(ctx, o); err != nil {
		o.Held = true
	}
	now := s.Clock.Now()
	planned, write := plan(parsed, *o.Status, o.GetGeneration(), o.Replicas, o.Held, now)
	if write {
		if err = s.frozen(ctx, o, planned); err != nil {
			planned, write = plan(parsed, *o.Status, o.GetGeneration(), o.Replicas, true, now)
		}
	}
	*o.Status = planned
	if write {
		err = s.write(ctx, o)
		return err == nil, 0, err
	}
	wake = trigger.Longest // Until an autoscaler that was deleted is noticed.
	if planned != nil && len(planned.Next) > 0 {
		wake = trigger.Until(planned.Next[0].Time.Time, now)
	}
	if status.HasReason(err, status.ReasonFrozen) {
		wake = min(wake, freeze.Again)
	}
	return false, wake, err
}

// write writes status first, and then the replicas: see the documentation of the package.
func (s *Step) write(ctx context.Context, o *Object) error {
	if err := o.Writer.WriteFirst(ctx); err != nil {
		return err
	}
	planned := *o.Status
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"replicas":%d}}`,
		o.GetUID(), o.GetResourceVersion(), planned.Replicas)
	err := s.Client.SubResource("scale").Patch(ctx, o.Object, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldManager),
		client.WithSubResourceBody(&autoscalingv1.Scale{}), client.DisableReadYourWritesConsistency, o.Writer.Owner)
	if err == nil {
		times.WithLabelValues(o.Kind.Kind).Inc()
		s.Recorder.Eventf(o.Object, nil, corev1.EventTypeNormal, reasonScaled, "Scale", "scaled from %d to %d by schedule %q",
			o.Replicas, planned.Replicas, planned.Name)
	}
	return apply.Refused("scaling", o.Object, err)
}

// frozen returns a status.Readiness if the namespace is frozen: then the number waits for the end
// of that.
func (s *Step) frozen(ctx context.Context, o *Object, planned *modelv1.ScheduleStatus) error {
	reason, frozen, err := s.Freeze.Frozen(ctx, o.GetNamespace())
	if err != nil {
		return apply.Refused("scaling", o.Object, err)
	}
	if frozen {
		return status.NewReconciling(status.ReasonFrozen, fmt.Sprintf(
			"schedule %q is on hold: namespace is frozen (%s)", planned.Name, reason))
	}
	return nil
}

// autoscaled returns a status.Readiness if a HorizontalPodAutoscaler scales the object, that of a
// ScaledObject included.
func (s *Step) autoscaled(ctx context.Context, o *Object) error {
	all, err := Autoscalers(ctx, s.Client, o, o.Kind.GroupKind())
	if err != nil || len(all) == 0 {
		return err
	}
	return status.NewStalled(status.ReasonConflict, fmt.Sprintf(
		"HorizontalPodAutoscaler %q scales this object, and so do its schedules; delete it, or remove spec.schedules", all[0].Name))
}

// indexTarget is the name of the index of HorizontalPodAutoscalers by what they scale.
const indexTarget = "spec.scaleTargetRef"

// Index adds that index to the cache of a manager. Without it, each reconcile would copy all of a
// namespace.
func Index(mgr manager.Manager) error {
	return mgr.GetFieldIndexer().IndexField(context.Background(), &autoscalingv2.HorizontalPodAutoscaler{}, indexTarget, func(obj client.Object) []string {
		target := &obj.(*autoscalingv2.HorizontalPodAutoscaler).Spec.ScaleTargetRef
		return []string{scaled(schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).GroupKind(), target.Name)}
	})
}

func scaled(kind schema.GroupKind, name string) string { return kind.String() + "/" + name }

// Autoscalers returns the HorizontalPodAutoscalers that scale an object, those of ScaledObjects
// included.
func Autoscalers(ctx context.Context, c client.Reader, obj client.Object, kind schema.GroupKind) ([]autoscalingv2.HorizontalPodAutoscaler, error) {
	var all autoscalingv2.HorizontalPodAutoscalerList
	err := c.List(ctx, &all, client.InNamespace(obj.GetNamespace()), client.MatchingFields{indexTarget: scaled(kind, obj.GetName())},
		client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil, fmt.Errorf("reading HorizontalPodAutoscalers: %w", err)
	}
	return slices.DeleteFunc(all.Items, func(scaler autoscalingv2.HorizontalPodAutoscaler) bool { // A reader without the index lists others too.
		target := &scaler.Spec.ScaleTargetRef
		return target.Name != obj.GetName() || schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).GroupKind() != kind
	}), nil
}

// plan returns the status of the schedules of an object at an instant, and whether its number of
// replicas is to be written. before is its status, nil if it has none yet. held leaves what is due
// for later.
func plan(parsed schedules.Schedules, before *modelv1.ScheduleStatus, generation int64, replicas int32, held bool, now time.Time) (
	status *modelv1.ScheduleStatus, write bool,
) {
	latest := parsed.Latest(now)
	if latest.IsZero() || held && before == nil {
		return before, false
	}
	if status = before.DeepCopy(); status == nil {
		status = &modelv1.ScheduleStatus{}
	}
	if isRemoved(latest, status.Time.Time, now) || isDone(status.Pending, generation, replicas) {
		status.Pending = nil
	}
	open := status.Time.Time
	if status.Pending == nil && latest.Replicas == status.Replicas {
		open = open.Add(time.Second) // It is done, and no user has changed its number.
	}
	if !held {
		write = begin(status, parsed.Due(open, now), generation, replicas)
	}
	if latest.Equal(status.Time.Time) {
		status.Name = latest.Name // A user may have changed it.
	}
	status.Next = next(parsed, status.Time.Time, now)
	return status, write
}

// begin records a due time, if there is one, and reports whether its number is to be written.
func begin(status *modelv1.ScheduleStatus, due schedules.Time, generation int64, replicas int32) (write bool) {
	if due.IsZero() {
		return false
	}
	status.ScheduledReplicas, status.Pending = scheduled(due), nil
	if write = replicas != due.Replicas; write {
		status.Pending = &modelv1.PendingReplicas{Generation: generation, Replicas: replicas}
	}
	return write
}

// isRemoved reports whether the time in status has passed and is not in the spec any more.
func isRemoved(latest schedules.Time, in, now time.Time) bool {
	return latest.Before(in) && !in.After(now)
}

// isDone reports whether a pending write has happened, or another client has changed the object so
// that it must not happen any more.
func isDone(pending *modelv1.PendingReplicas, generation int64, replicas int32) bool {
	if pending == nil || generation == pending.Generation {
		return false
	}
	return generation != pending.Generation+1 || replicas != pending.Replicas
}

// next returns the next scheduled times that are not done.
func next(parsed schedules.Schedules, done, now time.Time) []modelv1.ScheduledReplicas {
	if done.After(now) {
		now = done
	}
	var out []modelv1.ScheduledReplicas
	for _, at := range parsed.Announced(now) {
		out = append(out, scheduled(at))
	}
	return out
}

func scheduled(at schedules.Time) modelv1.ScheduledReplicas {
	return modelv1.ScheduledReplicas{Name: at.Name, Time: metav1.NewTime(at.UTC()), Replicas: at.Replicas}
}

var times = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "modelbox_scheduled_replicas_total",
	Help: "Scheduled times at which a number of replicas was written, by kind. One whose number was there already does not count.",
}, []string{"kind"})

func init() {
	metrics.Registry.MustRegister(times)
	for _, kind := range []string{"ModelBox", "App", "UnitedDeployment"} {
		times.WithLabelValues(kind) // A rate needs a zero to start from.
	}
}
