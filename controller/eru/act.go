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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// fieldManager owns, in metadata.managedFields, the time of a restart. It must not be
// apply.FieldManager: on a Deployment that a ModelBox or an App owns, the next apply would
// remove the annotation, because the desired Deployment does not have it, and that would be
// another rollout.
const fieldManager = "modelbox-eru"

// restart restarts the Deployment, after status says so: see status.Writer. In a frozen
// namespace the scheduled time is skipped. If the API server refuses it, the decision becomes to
// wait; any other error leaves everything as it is.
func (r *Reconciler) restart(ctx context.Context, obj *mtsrev1.Eru, writer *status.Writer, deployment *appsv1.Deployment, d *decision, p plan) error {
	_, frozen, err := r.Freeze.Frozen(ctx, obj.Namespace)
	switch {
	case frozen:
		p.settle(d, d.next, mtsrev1.EruSkipped, status.ReasonFrozen)
	case err == nil:
		setRestarting(obj, d.next, r.Clock.Now())
		if err := writer.WriteFirst(ctx); err != nil {
			return err
		}
		if err = r.patch(ctx, writer.Owner, deployment, d.next); err == nil {
			now := r.Clock.Now()
			lateness.Observe(now.Sub(d.next).Seconds())
			p.settle(d, d.next, mtsrev1.EruRestarted, "")
			d.entries[len(d.entries)-1].StartedAt = new(metav1.NewTime(now))
		}
	}
	if reason := refusalReason(err); reason != "" {
		d.waitFor(reason, ": "+err.Error())
		return nil
	}
	return err
}

// patch is the one write to the Deployment: the scheduled time, with the resourceVersion of
// the Deployment that was read as precondition.
func (r *Reconciler) patch(ctx context.Context, owner *limit.Owner, deployment *appsv1.Deployment, slot time.Time) error {
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`,
		deployment.UID, deployment.ResourceVersion, api.AnnotationRestartedAt, formatTime(slot))
	named := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name}}
	err := r.Client.Patch(ctx, named, client.RawPatch(types.MergePatchType, body), client.FieldOwner(fieldManager), owner)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("restarting Deployment %q: %w", deployment.Name, err) // The cache is stale.
	}
	return apply.Refused("restarting", deployment, err)
}

// refusalReason returns the reason for which the restart waits after an error, "" if the error is
// to be returned: a write that was not sent, or the reason in the API server's response, such as
// Forbidden. An admission webhook can put a sentence there, which cannot be the reason of a
// condition.
func refusalReason(err error) string {
	if _, contested := errors.AsType[*limit.ContestedError](err); contested {
		return status.ReasonContested
	}
	if _, refused := errors.AsType[*apply.RefusedError](err); !refused && !apierrors.IsForbidden(err) {
		return ""
	}
	reason := string(apierrors.ReasonForError(err))
	letter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
	if reason == "" || len(reason) > 64 || strings.TrimFunc(reason, letter) != "" {
		return reasonRefused
	}
	return reason
}

// emit emits an event for each scheduled time that was decided. One whose status could not be
// written is decided again, and has another event.
func (r *Reconciler) emit(obj *mtsrev1.Eru, deployment *appsv1.Deployment, d decision) {
	var related runtime.Object
	if deployment != nil {
		related = deployment
	}
	for _, entry := range d.entries {
		note := "scheduled time " + formatTime(entry.Slot.Time)
		if entry.Reason != "" {
			note += ": " + entry.Reason
		}
		r.Recorder.Eventf(obj, related, corev1.EventTypeNormal, string(entry.Result), "Restart", "%s", note)
	}
}
