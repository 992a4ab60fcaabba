// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eru reconciles Erus: each restarts an existing Deployment, with a rolling update,
// on a cron schedule. API and messages call a time of the schedule a scheduled time, as
// CronJob does; history[].slot contains one.
//
// No goroutine and no timer holds a schedule. What was decided is in the Eru's status, what
// was done is in the Deployment's pod template, and each reconcile computes from the two,
// and from the clock, what is due:
//
//   - status.nextScheduleTime is the first scheduled time that is not decided. It moves
//     beyond a scheduled time only in the write that adds the outcome to status.history,
//     and it is never before status.lastScheduleTime, whatever is changed in the spec.
//   - A restart is one write: the scheduled time becomes the annotation
//     kubectl.kubernetes.io/restartedAt of the pod template, with the resourceVersion of
//     the Deployment that was read as precondition, and only if it moves forward.
//
// So a repeated reconcile finds its own work and continues. After a crash before a write the
// decision is repeated; after a crash that follows a write, the next reconcile finds what was
// written. Of two leaders one gets a conflict from the API server, because both writes have
// a resourceVersion. The only exception is another client that removes the annotation, or
// sets an older time, between the two writes of a scheduled time.
//
// Nothing moves back with the clock. A clock that was far ahead for a while leaves a
// nextScheduleTime that is as far ahead; a new Eru, and a "kubectl rollout restart" to
// bring restartedAt back, end that.
//
// A scheduled time is worked on from that time plus its jitter until the deadline after
// that, or until the next one is due. Where more than one has passed, only the latest is
// worked on; history contains the one before it, and that entry (Superseded, or
// MissedDeadline for the latest itself) stands for all earlier ones that are not in history.
// They are not counted, so a year of downtime costs what a minute costs.
//
// A scheduled time counts only if it is after the instant from which the spec counts. For an
// Eru as it was created that is its creation. For a changed spec, a change of enabled
// included, that instant is not recorded anywhere, so it is the one at which the change is
// observed; of the scheduled times before it, only the one in status counts, and only if it
// is the latest one of the new spec too. So a change while the controller is away can cost
// a late restart, but never causes one that the spec did not contain.
package eru
