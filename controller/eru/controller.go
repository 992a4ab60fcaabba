// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/webhook/eru"
)

// +kubebuilder:rbac:groups=mtsre.meitu.com,resources=erus,verbs=list;watch;create
// +kubebuilder:rbac:groups=mtsre.meitu.com,resources=erus/status,verbs=patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// fieldManager owns, in metadata.managedFields, the time of a restart. It must not
// be apply.FieldManager: on a Deployment that this project made itself, the next
// apply of its owner would take the annotation for its own, find that the owner
// does not ask for it, and remove it, which is another restart.
const fieldManager = "modelbox-eru"

// longestSleep is how long the controller trusts its timers. They do not follow a
// clock that is set, so this is how late a jump of the clock is noticed.
const longestSleep = 5 * time.Minute

// Reconciler reconciles Erus.
type Reconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Fresh is told of Deployments as they were restarted; it may be nil.
	Fresh *apply.Fresh
}

// SetupWithManager adds the controllers for Erus to a manager: the one that acts
// on them, and the one that gives annotated Deployments theirs.
func SetupWithManager(mgr manager.Manager, clk clock.PassiveClock) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &mtsrev1.Eru{}, indexTarget, targetOf); err != nil {
		return fmt.Errorf("indexing Erus by their Deployment: %w", err)
	}
	recorder := mgr.GetEventRecorder(apply.FieldManager)
	r := &Reconciler{Client: mgr.GetClient(), Recorder: recorder, Clock: clk, Fresh: &apply.Fresh{}}
	if err := r.watch(mgr).Complete(measured(r.Client, status.RecordedWithLock(r.Client, recorder, r))); err != nil {
		return err
	}
	b := &Binder{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: recorder}
	return b.watch(mgr).Complete(reconcile.AsReconciler(b.Client, b))
}

// Reconcile decides on the slots of an Eru whose time has come, restarts its
// Deployment if one of them asks for it, and fills in its status. It runs
// admission's defaults and rules again, so an object that was stored while the
// webhook was away is handled the same way.
func (r *Reconciler) Reconcile(ctx context.Context, obj *mtsrev1.Eru, claim status.Claim) (reconcile.Result, error) {
	asked := obj.DeepCopy()
	eru.Default(asked, nil, nil)
	errs := eru.Validate(asked)
	target, err := r.target(ctx, asked)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := r.Clock.Now()
	var d decision
	var wake time.Time
	switch {
	case len(errs) > 0:
		d = recall(obj).halt(status.ReasonInvalidSpec, target, now)
	case !asked.Spec.Enabled:
		d = recall(obj).halt(reasonDisabled, target, now)
	default:
		claimed := func(ctx context.Context, slot time.Time) error {
			announceRestart(obj, slot, now)
			return claim(ctx)
		}
		if d, wake, err = r.act(ctx, asked, target, now, claimed); err != nil {
			return reconcile.Result{}, err
		}
	}
	conclude(obj, asked, errs, target, d, now)
	r.announce(obj, target, d)
	observe(obj, d)
	return reconcile.Result{RequeueAfter: sleep(now, wake)}, nil
}

// target reads, from the cache, the Deployment that an Eru restarts, nil if there
// is none.
func (r *Reconciler) target(ctx context.Context, asked *mtsrev1.Eru) (*appsv1.Deployment, error) {
	target := &appsv1.Deployment{}
	key := types.NamespacedName{Namespace: asked.Namespace, Name: asked.Spec.DeploymentName}
	if err := r.Client.Get(ctx, key, target); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading Deployment %q: %w", key.Name, err)
	}
	return target, nil
}

// act decides on the slots of an enabled Eru and restarts its Deployment if that
// is due, once status says so: see status.Claim. A refusal makes the slot wait; any
// other error leaves all as it is.
func (r *Reconciler) act(
	ctx context.Context, asked *mtsrev1.Eru, target *appsv1.Deployment, now time.Time, claim func(context.Context, time.Time) error,
) (decision, time.Time, error) {
	p, err := planOf(asked)
	if err != nil {
		return decision{}, time.Time{}, err
	}
	d := p.decide(recall(asked), target, now)
	if !d.restart {
		return d, p.wake(d, now), nil
	}
	if err := claim(ctx, d.next); err != nil {
		return d, time.Time{}, err
	}
	err = r.restart(ctx, target, d.next)
	refusal, refused := errors.AsType[*apply.RefusedError](err)
	switch {
	case refused:
		wait := status.Underway(word(refusal.Err), fmt.Sprintf("the restart of %s: %s", written(d.next), refusal))
		d.wait, d.refused = &wait, true
	case err != nil:
		return d, time.Time{}, err
	default:
		d.restarted(p, r.Clock.Now())
	}
	return d, p.wake(d, now), nil
}

// restarted settles the slot that the Deployment was restarted for just now.
func (d *decision) restarted(p plan, now time.Time) {
	lateness.Observe(now.Sub(d.next).Seconds())
	d.settle(d.next, mtsrev1.EruRestarted, "")
	d.entries[len(d.entries)-1].StartedAt = new(metav1.NewTime(now))
	d.next = p.next(d.next)
}

// restart is the one write: the slot's time, on the very Deployment that was
// judged. The resourceVersion makes a decision on stale reading fail.
func (r *Reconciler) restart(ctx context.Context, target *appsv1.Deployment, slot time.Time) error {
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`,
		target.UID, target.ResourceVersion, restartedAtAnnotation, written(slot))
	named := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: target.Namespace, Name: target.Name}}
	err := r.Client.Patch(ctx, named, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldManager))
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("restarting Deployment %q: %w", target.Name, err) // The cache is behind.
	}
	if err == nil {
		r.Fresh.Add(named)
	}
	return apply.Refused("restarting", target, err)
}

// word is the API server's word for a refusal, such as Forbidden. An admission
// webhook may put a sentence there, which no condition can have as its reason.
func word(err error) string {
	reason := string(apierrors.ReasonForError(err))
	letter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
	if reason == "" || len(reason) > 64 || strings.TrimFunc(reason, letter) != "" {
		return reasonRefused
	}
	return reason
}

// announce tells, by an event for each, of slots that passed without a restart. A
// restart is told of in history and by the Deployment's own events: a third request
// for each would make a thousand Erus of one second half as late again.
func (r *Reconciler) announce(obj *mtsrev1.Eru, target *appsv1.Deployment, d decision) {
	var related runtime.Object
	if target != nil {
		related = target
	}
	for _, entry := range d.entries {
		if entry.Result == mtsrev1.EruRestarted {
			continue
		}
		note := "slot " + written(entry.Slot.Time)
		if entry.Reason != "" {
			note += ": " + entry.Reason
		}
		r.Recorder.Eventf(obj, related, corev1.EventTypeNormal, string(entry.Result), "Restart", "%s", note)
	}
}

// sleep is how long to sleep until an instant, 0 (for ever) for the zero time.
func sleep(now, wake time.Time) time.Duration {
	if wake.IsZero() {
		return 0
	}
	return min(max(wake.Sub(now), time.Millisecond), longestSleep)
}
