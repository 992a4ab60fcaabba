// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// state is what the status of an Eru says about its scheduled times.
type state struct {
	// next is the first scheduled time that is not decided, the zero time if there is none:
	// the Eru is new, or was disabled.
	next time.Time
	// last is the latest scheduled time that is decided.
	last time.Time
	// waiting is the reason for which the restart at next has been waiting, "" if it has not.
	waiting string
	// changed says that the spec has another generation than the status.
	changed bool
	// created is when the spec was created, if it has the first generation and there is no
	// status yet; otherwise the zero time.
	created time.Time
}

var zero metav1.Time

func stateFromStatus(obj *mtsrev1.Eru) state {
	st := &obj.Status
	s := state{
		next:    ptr.Deref(st.NextScheduleTime, zero).Time,
		last:    ptr.Deref(st.LastScheduleTime, zero).Time,
		changed: st.ObservedGeneration != obj.Generation,
	}
	if st.ObservedGeneration == 0 && obj.Generation <= 1 {
		s.created = obj.CreationTimestamp.Time
	}
	if isFor(st.Pending, s.next) && st.Pending.Reason != reasonRestarting {
		s.waiting = st.Pending.Reason
	}
	return s
}

// since returns the instant after which scheduled times count.
func (s state) since(now time.Time) time.Time {
	since := now
	if !s.created.IsZero() {
		since = s.created
	}
	if s.last.After(since) {
		return s.last
	}
	return since
}

// suspend returns the decision for an Eru that restarts nothing: the next scheduled time is
// skipped if it has come, and there is none after it.
func (s state) suspend(reason string, deployment *appsv1.Deployment, now time.Time) decision {
	var d decision
	switch {
	case s.next.IsZero() || s.next.After(now):
	case restartedAt(deployment).Equal(s.next):
		d.add(s.next, mtsrev1.EruRestarted, "")
	default:
		d.add(s.next, mtsrev1.EruSkipped, reason)
	}
	return d
}

// missed returns the outcome for the next scheduled time after its deadline: the reason for
// which it waited, if it did.
func (s state) missed() (result mtsrev1.EruResult, reason string) {
	switch s.waiting {
	case "":
		return mtsrev1.EruSkipped, reasonMissedDeadline
	case reasonRolloutInProgress:
		return mtsrev1.EruSkipped, s.waiting
	}
	return mtsrev1.EruResultFailed, s.waiting
}

// reasonRestarting is the reason of status.pending from just before a Deployment is restarted
// until status contains the restart.
const reasonRestarting = "Restarting"

// newPending returns status.pending of a scheduled time. Its beginning is set when it is stored.
func newPending(slot time.Time, reason, message string) *mtsrev1.EruPending {
	return &mtsrev1.EruPending{Slot: metav1.NewTime(slot), Reason: reason, Message: rules.Cut(message, mtsrev1.MaxPendingMessage)}
}

// isFor reports whether status.pending is that of a scheduled time.
func isFor(pending *mtsrev1.EruPending, slot time.Time) bool {
	return pending != nil && pending.Slot.Time.Equal(slot)
}

// formatTime returns a scheduled time as it is in annotations and in messages.
func formatTime(slot time.Time) string { return slot.UTC().Format(time.RFC3339) }
