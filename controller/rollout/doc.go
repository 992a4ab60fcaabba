// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout emits the events of rollouts: when one begins, and when it is complete, with
// its duration.
//
// A rollout replaces the pods of a child because a field manager changed its pod template, or
// creates them because the child is new. Scaling is not a rollout, and neither is the restart
// of a pod.
//
// What a reconcile observes anyway is enough for it: there is no further request. A rollout is
// visible in the status of the child from its begin to its end, so what is remembered is only
// whether the events were emitted. A process that starts while a rollout is in progress takes
// its begin as known, and finds the time of it in the status of the owner.
package rollout
