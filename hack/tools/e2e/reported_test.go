// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"slices"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// The health of an object in Argo CD, and its status in Flux.
const (
	Healthy     = "Healthy"
	Progressing = "Progressing"
	Degraded    = "Degraded"
	Suspended   = "Suspended"

	Current     = "Current"
	InProgress  = "InProgress"
	Failed      = "Failed"
	Terminating = "Terminating"
)

// The kinds that share states, separated by spaces.
const (
	replicated = "ModelBox App"
	workloads  = replicated + " Genericdaemon"
	scaled     = workloads + " UnitedDeployment"
	everyKind  = scaled + " Eru"
)

// report is a readiness that the controllers of some kinds report.
type report struct {
	status.Readiness
	paused       bool
	kinds        string
	argocd, flux string
}

func (r *report) of(kind string) bool { return slices.Contains(strings.Fields(r.kinds), kind) }

func ready(kinds, reason, message string) report {
	readiness := status.NewReady(message)
	readiness.Reason = reason
	return report{Readiness: readiness, kinds: kinds, argocd: Healthy, flux: Current}
}

func reconciling(kinds, reason, message string) report {
	return report{Readiness: status.NewReconciling(reason, message), kinds: kinds, argocd: Progressing, flux: InProgress}
}

func stalled(kinds, reason, message string) report {
	return report{Readiness: status.NewStalled(reason, message), kinds: kinds, argocd: Degraded, flux: Failed}
}

// paused returns a report of an object whose spec.paused is true.
func paused(r report) report {
	r.paused = true
	if !r.Stalled {
		r.argocd = Suspended
	}
	return r
}

// reported are the states that controllers report, with every reason of Ready.
var reported = []report{
	ready(scaled, "Ready", "4 of 4 pods are available"),
	ready("Eru", "Scheduled", `next restart of Deployment "web" at 2026-01-03T00:00:00Z`),
	ready("Eru", "Disabled", "spec.enabled is false: nothing is restarted"),
	// The restart of a Deployment is what a healthy Eru does.
	{
		Readiness: status.Readiness{Ready: true, Reconciling: true, Reason: "Restarting", Message: "the restart of 2026-01-02T00:00:00Z"},
		kinds:     "Eru", argocd: Healthy, flux: InProgress,
	},

	reconciling(scaled, "Progressing", "3 of 4 pods are available"),
	reconciling(scaled, "WaitingForDeletion", `Deployment "web" is being deleted`),
	reconciling("ModelBox", "FetchingModel", "0 of 4 pods are available; the model is being fetched for 4 pods"),
	reconciling("Eru", "RolloutInProgress", "the restart of 2026-01-02T00:00:00Z waits for another rollout"),
	reconciling("Eru", "Forbidden", "the restart of 2026-01-02T00:00:00Z: patching: forbidden"),

	stalled(everyKind, "InvalidSpec", "spec.podTemplate: Invalid value"),
	stalled(scaled, "ChildRefused", "creating Deployment web: exceeded quota: pods"),
	stalled(scaled, "Terminating", "the namespace is being deleted: no object can be created in it"),
	stalled(workloads, "NameConflict", `Deployment "web" has another owner`),
	stalled(workloads, "Contested", "spec.replicas is changed by kubectl-edit as often as it is repaired"),
	stalled(workloads, "Rewritten", "4 of 4 pods are available; Deployment spec.template.spec.containers[web].image rewritten by admission"),
	stalled(replicated, "ReplicaFailure", "pods is forbidden: exceeded quota"),
	stalled(replicated, "ProgressDeadlineExceeded", `ReplicaSet "web-6c9f" has timed out progressing.`),
	stalled(workloads, "ImagePullBackOff", "0 of 4 pods are available; ImagePullBackOff: not found"),
	stalled(workloads, "InvalidImageName", "0 of 4 pods are available; InvalidImageName: A B"),
	stalled(workloads, "ErrImageNeverPull", "0 of 4 pods are available; ErrImageNeverPull: web:1"),
	stalled(workloads, "ImageInspectError", "0 of 4 pods are available; ImageInspectError: web:1"),
	stalled(workloads, "CreateContainerConfigError", `0 of 4 pods are available; secret "web" not found`),
	stalled(workloads, "CreateContainerError", "0 of 4 pods are available; CreateContainerError: name is reserved"),
	stalled(workloads, "RunContainerError", "0 of 4 pods are available; RunContainerError: no such file or directory"),
	stalled(workloads, "PostStartHookError", "0 of 4 pods are available; PostStartHookError: exit code 1"),
	stalled(workloads, "CrashLoopBackOff", "0 of 4 pods are available; CrashLoopBackOff: exit code 255"),
	stalled(workloads, "OOMKilled", "0 of 4 pods are available; OOMKilled: 2Gi"),
	stalled("ModelBox", "ModelFetchFailed", "0 of 4 pods are available; [NotFound] 404 Not Found"),
	stalled(workloads, "Unschedulable", "0 of 4 pods are available; 0/3 nodes are available"),
	stalled("UnitedDeployment", "Conflict", `HorizontalPodAutoscaler "web" scales the Deployment`),
	stalled("UnitedDeployment Eru", "TargetNotFound", `there is no Deployment "web" in this namespace`),
	stalled("Eru", "Invalid", "the restart of 2026-01-02T00:00:00Z: Deployment is invalid"),
	stalled("Eru", "InternalError", "the restart of 2026-01-02T00:00:00Z: an error on the server"),
	stalled("Eru", "Refused", "the restart of 2026-01-02T00:00:00Z: refused"),

	// Neither Reconciling nor Stalled: a user has paused it, or the controller continues by itself.
	{
		Readiness: status.Readiness{Reason: "DeploymentPaused", Message: `Deployment "web" is paused: kubectl rollout resume deployment/web -n team`},
		kinds:     replicated, argocd: Progressing, flux: InProgress,
	},
	{
		Readiness: status.Readiness{Reason: "NoMatchingNodes", Message: `no node that the daemon may run on has the label "logs"`},
		kinds:     "Genericdaemon", argocd: Progressing, flux: InProgress,
	},

	paused(report{Readiness: status.Readiness{Reason: "Paused", Message: "changes are waiting"}, kinds: workloads, flux: InProgress}),
	paused(ready(workloads, "Ready", "4 of 4 pods are available")),
	paused(reconciling(workloads, "Progressing", "3 of 4 pods are available")),
	paused(stalled(workloads, "InvalidSpec", "spec.podTemplate: Invalid value")),

	// A later version may have reasons that this one does not know.
	ready(everyKind, "LaterReason", "as it should be"),
	reconciling(everyKind, "LaterReason2", "in some time"),
	stalled(everyKind, "LaterReason3", "do something"),
}

// absent stands for an object without status.
const absent = "absent"

// other is a status that is not one of the current spec, or not a whole one.
type other struct {
	name    string
	status  any
	deleted bool

	argocd, message, flux string
}

// stale are a readiness, and the generation that the status is of.
func stale(r report, generation int64) map[string]any {
	return map[string]any{"observedGeneration": generation, "conditions": encoded(r.conditions(generation))}
}

var (
	wasReady   = ready("", "Ready", "4 of 4 pods are available")
	wasStalled = stalled("", "ImagePullBackOff", "0 of 4 pods are available")
)

var others = []other{
	// kstatus cannot tell an object that no controller has seen from one without a controller.
	{name: "without status", status: absent, argocd: Progressing, message: notReconciled, flux: Current},
	{name: "with a status of null", status: nil, argocd: Progressing, message: notReconciled, flux: Current},
	{name: "with an empty status", status: map[string]any{}, argocd: Progressing, message: notReconciled, flux: Current},
	{
		name: "with conditions of null", status: map[string]any{"observedGeneration": int64(generation), "conditions": nil},
		argocd: Progressing, message: notReconciled, flux: Current,
	},
	{
		name: "without conditions", status: map[string]any{"observedGeneration": int64(generation), "conditions": []any{}},
		argocd: Progressing, message: notReported, flux: Current,
	},
	{name: "ready, with a new spec", status: stale(wasReady, before), argocd: Progressing, message: notReconciled, flux: InProgress},
	{name: "stalled, with a new spec", status: stale(wasStalled, before), argocd: Progressing, message: notReconciled, flux: InProgress},
	{name: "paused, with a new spec", status: stale(paused(wasReady), before), argocd: Progressing, message: notReconciled, flux: InProgress},
	{name: "ready, being deleted", status: stale(wasReady, generation), deleted: true, argocd: Progressing, message: beingDeleted, flux: Terminating},
	{name: "stalled, being deleted", status: stale(wasStalled, generation), deleted: true, argocd: Progressing, message: beingDeleted, flux: Terminating},
	{name: "without status, being deleted", status: absent, deleted: true, argocd: Progressing, message: beingDeleted, flux: Terminating},
	{
		name: "with a condition that is unknown",
		status: map[string]any{"observedGeneration": int64(generation), "conditions": []any{
			map[string]any{"type": "LaterCondition", "status": "True", "reason": "Later", "message": "later"},
			map[string]any{"type": "Ready", "status": "Unknown", "reason": "Later", "message": "wait"},
		}},
		argocd: Progressing, message: "wait", flux: InProgress,
	},
	{
		name: "with fields of null",
		status: map[string]any{"observedGeneration": int64(generation), "replicas": nil, "conditions": []any{
			map[string]any{"type": "Ready", "status": "True", "reason": nil, "message": nil, "lastTransitionTime": nil},
		}},
		argocd: Healthy, message: "", flux: Current,
	},
}
