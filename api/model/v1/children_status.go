// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ChildrenStatus is the part of the status that all kinds with pods have: the state of the object, and what the
// controller has written to its children.
type ChildrenStatus struct {
	// observedGeneration is the most recent metadata.generation that the
	// controller has observed.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// problems are the reasons why pods are not available, the worst first, while the
	// object has not been ready for more than 15 seconds. At most 5 items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5
	Problems []Problem `json:"problems,omitempty"`

	// conditions are the latest available observations of the object's state. Ready and
	// Available are present from the first reconcile on; Reconciling, Stalled, Paused and
	// ModelDiffers are present only while they are true.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// children are the children as they were written last, one for each kind. The controller reads
	// and writes a child only when one of these hashes changes. At most 8 items.
	//
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=8
	Children []ChildStatus `json:"children,omitempty"`

	// configuration are the ConfigMaps and Secrets that the pod template refers to, with a hash of
	// the data of each, as in the annotation of the pod template. Present only with
	// spec.restartOnChange, and if it has at most 32768 characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Configuration string `json:"configuration,omitempty"`

	// template is the hash of the rest of the pod template. Present only with spec.restartOnChange, or
	// with spec.holdChanges.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Template string `json:"template,omitempty"`

	// keptTemplate is the hash (SHA-256) of the pod template that the pods keep while a changed one waits
	// for a window, with spec.holdChanges. A ControllerRevision has the template itself: its name is that of
	// the object, a dash, and the first 16 characters of the hash.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	KeptTemplate string `json:"keptTemplate,omitempty"`
}

// MaxConfiguration is the longest value of status.configuration, in bytes.
const MaxConfiguration = 32768

// ChildStatus is one child as it was written last.
type ChildStatus struct {
	// kind is the kind of the child, such as Deployment.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// desired is the hash of the desired state.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Desired string `json:"desired,omitempty"`

	// stored is the hash of what the controller owns in the child by metadata.managedFields, and
	// of the values there, in the response of the API server.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Stored string `json:"stored,omitempty"`

	// rewritten are the paths of fields that do not have their desired value in the response of the
	// API server, because admission changed or removed them. At most 3 items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=256
	Rewritten []string `json:"rewritten,omitempty"`
}
