// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OnFailedRollout defines what becomes of a rollout that fails.
//
// +kubebuilder:validation:Enum="";Hold;Return
type OnFailedRollout string

const (
	// OnFailedRolloutHold leaves a failed rollout as it is.
	OnFailedRolloutHold OnFailedRollout = "Hold"
	// OnFailedRolloutReturn returns once to what the last complete rollout was made of.
	OnFailedRolloutReturn OnFailedRollout = "Return"
)

// RolloutStatus is the last complete rollout of an object, and the one after it.
type RolloutStatus struct {
	// complete is the hash (SHA-256) of the spec of the last complete rollout, without the fields that a return
	// leaves as they are. A ControllerRevision has that spec: its name is that of the object, a dash, and
	// the first 16 characters of the hash.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Complete string `json:"complete,omitempty"`

	// fetcher is the fetcher of the last complete rollout.
	//
	// +optional
	Fetcher *FetcherStatus `json:"fetcher,omitempty"`

	// present is such a hash of the spec, while its rollout is not complete.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Present string `json:"present,omitempty"`

	// since is when the controller first saw this spec.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// failed is why the rollout of this spec has failed. While it is set, the children are those of the last
	// complete rollout.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Failed string `json:"failed,omitempty"`

	// failedGeneration is the generation of the Deployment whose rollout has failed: the children are those of the
	// last complete rollout once it has another one.
	//
	// +optional
	FailedGeneration int64 `json:"failedGeneration,omitempty"`
}
