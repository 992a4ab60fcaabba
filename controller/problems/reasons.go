// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

// The reasons of problems. Where kubelet or the scheduler has a word for it, that is the
// reason; the others are named here.
const (
	// reasonReplicaFailure: no pod can be created; a quota or Pod Security refuses it.
	reasonReplicaFailure = "ReplicaFailure"
	// reasonPodsMissing: the DaemonSet controller has not created the pods of some nodes.
	reasonPodsMissing = "PodsMissing"

	reasonInvalidImageName           = "InvalidImageName"
	reasonErrImageNeverPull          = "ErrImageNeverPull"
	reasonImageInspectError          = "ImageInspectError"
	reasonImagePullBackOff           = "ImagePullBackOff"
	reasonCreateContainerConfigError = "CreateContainerConfigError"
	reasonCreateContainerError       = "CreateContainerError"
	reasonRunContainerError          = "RunContainerError"
	reasonPostStartHookError         = "PostStartHookError"
	reasonOOMKilled                  = "OOMKilled"
	reasonCrashLoopBackOff           = "CrashLoopBackOff"
	reasonUnschedulable              = "Unschedulable"
	reasonSchedulingGated            = "SchedulingGated"

	// reasonNotStarted: the startup probe has not succeeded yet.
	reasonNotStarted = "NotStarted"
	// reasonNotReady: the readiness probe fails.
	reasonNotReady = "NotReady"
	// reasonPodNotReady: all containers are ready, and the pod is not.
	reasonPodNotReady = "PodNotReady"
	// reasonPodInitializing: an init container runs.
	reasonPodInitializing   = "PodInitializing"
	reasonContainerCreating = "ContainerCreating"
	// reasonFetchingModel: the init container of spec.model runs.
	reasonFetchingModel = "FetchingModel"
	// reasonModelFetchFailed: it has exited with an error.
	reasonModelFetchFailed = "ModelFetchFailed"
	// reasonPending: the scheduler, or kubelet, has not acted on the pod.
	reasonPending = "Pending"
	// reasonPodNotDeleted: the pod exists although its grace period is over.
	reasonPodNotDeleted = "PodNotDeleted"
	// reasonPodFailed: the pod has failed, and its status has no reason.
	reasonPodFailed = "PodFailed"
)

// class is what a reason means for the object.
type class struct {
	// rank orders problems: the worst have the lowest rank.
	rank int
	// human is true if the cause stays until a change from outside: of the object, of a Secret,
	// of the registry, of the nodes.
	human bool
}

const (
	rankRefused = iota
	rankNeverRuns
	rankCrashes
	rankUnschedulable
	rankOther
	rankStarting
	rankNotDeleted
	// rankFailed: failed pods are replaced, so they matter only if nothing else is wrong.
	rankFailed
)

var classes = map[string]class{
	reasonReplicaFailure:             {rankRefused, true},
	reasonInvalidImageName:           {rankNeverRuns, true},
	reasonErrImageNeverPull:          {rankNeverRuns, true},
	reasonImageInspectError:          {rankNeverRuns, true},
	reasonImagePullBackOff:           {rankNeverRuns, true},
	reasonCreateContainerConfigError: {rankNeverRuns, true},
	reasonCreateContainerError:       {rankNeverRuns, true},
	reasonRunContainerError:          {rankNeverRuns, true},
	reasonOOMKilled:                  {rankCrashes, true},
	reasonCrashLoopBackOff:           {rankCrashes, true},
	reasonPostStartHookError:         {rankCrashes, true},
	reasonModelFetchFailed:           {rankCrashes, true},
	reasonUnschedulable:              {rankUnschedulable, true},
	reasonNotStarted:                 {rankStarting, false},
	reasonNotReady:                   {rankStarting, false},
	reasonPodInitializing:            {rankStarting, false},
	reasonFetchingModel:              {rankStarting, false},
	reasonContainerCreating:          {rankStarting, false},
	reasonPodNotDeleted:              {rankNotDeleted, false},
}

// classOf returns the class of a reason. A reason that is not known here needs no human: a
// newer kubelet may have it for what passes.
func classOf(reason string) class {
	if known, ok := classes[reason]; ok {
		return known
	}
	return class{rank: rankOther}
}
