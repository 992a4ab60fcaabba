// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// The reasons of problems. Where kubelet or the scheduler has a word for it, that is the reason.
const (
	reasonImagePullBackOff  = "ImagePullBackOff"  // Also between two attempts.
	reasonOOMKilled         = "OOMKilled"         // A container exceeded its memory limit.
	reasonCrashLoopBackOff  = "CrashLoopBackOff"  // A container exits again and again.
	reasonModelFetchFailed  = "ModelFetchFailed"  // The init container of spec.model has exited with an error.
	reasonModelRateLimited  = "ModelRateLimited"  // It has exited because the server has answered enough for now.
	reasonFetchingModel     = "FetchingModel"     // The init container of spec.model runs.
	reasonPodInitializing   = "PodInitializing"   // Another init container runs.
	reasonContainerCreating = "ContainerCreating" // kubelet has been creating a container for long.
	reasonPending           = "Pending"           // The scheduler, or kubelet, has not acted on the pod.
)

// needIntervention are the reasons whose cause stays until a change from outside: of the object, of
// a Secret, of the registry, of the nodes. A newer kubelet may have other reasons, for what passes.
var needIntervention = sets.New(status.ReasonReplicaFailure, "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", reasonImagePullBackOff,
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PostStartHookError", reasonOOMKilled,
	reasonCrashLoopBackOff, reasonModelFetchFailed, corev1.PodReasonUnschedulable)

// ofTemplate are the reasons that a pod template itself has, and not the cluster, the nodes or a server,
// which the pods of another template would share. An image that cannot be pulled is not among them, nor
// is a volume that cannot be mounted: kubelet's words do not say whose fault that is.
var ofTemplate = sets.New("InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
	"PostStartHookError", reasonOOMKilled, reasonCrashLoopBackOff)

// ofModel are the first words of a termination message of fetch-model of which the same is true (see
// docs/models.md).
var ofModel = sets.New("NotFound", "Denied", "WrongHash", "RefusedArchive", "TooBig", "NoSpace", "Refused", "Invalid")

// IsOfTemplate reports whether a problem is one of the pod template itself.
func IsOfTemplate(p *modelv1.Problem) bool {
	said, _, _ := strings.Cut(strings.TrimPrefix(p.Message, "["), "]")
	return ofTemplate.Has(p.Reason) || p.Reason == reasonModelFetchFailed && ofModel.Has(said)
}
