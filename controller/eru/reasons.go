// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

// Why a scheduled time passed without a restart. For one that the API server refused it is
// the reason in the API server's response, such as Forbidden.
const (
	// reasonMissedDeadline: the controller did not run in time.
	reasonMissedDeadline = "MissedDeadline"
	// reasonSuperseded: the next scheduled time came before this one was decided.
	reasonSuperseded = "Superseded"
	// reasonSpecChanged: the spec was changed and does not contain this time any more, or it
	// is unknown whether it did at that time.
	reasonSpecChanged = "SpecChanged"
	// reasonDisabled: spec.enabled became false before it was decided.
	reasonDisabled = "Disabled"
	// reasonTargetNotFound: there was no Deployment.
	reasonTargetNotFound = "TargetNotFound"
	// reasonTargetIsNewer: the Deployment was created after it.
	reasonTargetIsNewer = "TargetIsNewer"
	// reasonTargetTerminating: the Deployment was being deleted.
	reasonTargetTerminating = "TargetTerminating"
	// reasonAlreadyRestarted: the Deployment was restarted after it.
	reasonAlreadyRestarted = "AlreadyRestarted"
	// reasonDeploymentPaused: the Deployment was paused.
	reasonDeploymentPaused = "DeploymentPaused"
	// reasonNoReplicas: the Deployment had no pods to restart.
	reasonNoReplicas = "NoReplicas"
	// reasonRefused: the API server refused the restart without a reason.
	reasonRefused = "Refused"
	// reasonRolloutInProgress: another rollout did not end in time.
	reasonRolloutInProgress = "RolloutInProgress"
)
