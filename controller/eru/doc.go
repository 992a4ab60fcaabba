// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eru restarts Deployments, rolling, on cron schedules.
//
// No goroutine and no timer holds a schedule. What has been decided is in the
// Eru's status, what has been done is in the Deployment's pod template, and each
// reconcile works out from the two, and from the clock it is handed, what is due:
//
//   - status.nextScheduleTime is the first slot that is not decided on yet. It
//     passes a slot only in the write that says in status.history what came of it,
//     and never lies behind status.lastScheduleTime, whatever becomes of the spec.
//   - A restart is one write: the slot's time becomes the annotation
//     kubectl.kubernetes.io/restartedAt of the pod template, on the very version
//     of the Deployment that was judged, and only if it moves forward.
//
// So a repeat finds its own work and goes on. A crash before a write repeats the
// decision, one after it finds what was written, and of two leaders one is
// refused by the API server, for both writes carry a resourceVersion. The one thing
// that undoes this is somebody who takes the annotation away, or puts an older time
// there, between the two writes of a slot.
//
// Nothing moves back with the clock. A clock that was far ahead for a while leaves
// a nextScheduleTime that is as far ahead; a new Eru, and a "kubectl rollout
// restart" to bring restartedAt back, end that.
//
// A slot is worked on from its time plus its jitter on until the deadline after
// that, or until the next slot's turn. Where more than one slot has passed, the
// latest alone is worked on; the history names the one before it, and that entry
// (Superseded, or MissedDeadline for the latest itself) stands for all that
// history does not name before it. None is counted, so a year costs what a minute
// costs.
//
// A slot counts only if it lies after the moment at which its schedule began to
// hold. For an Eru as it was created that is its creation. For a changed spec,
// enabled ones included, nobody wrote the moment down, so it is the one at which
// the change is seen; of what lies before, only the slot that status had announced
// counts, and only if it is the new spec's latest too. So an edit while the
// controller is away can cost a catch-up, but never causes a restart that nobody
// asked for.
package eru
