// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// GenericdaemonSpec defines the desired state of Genericdaemon.
type GenericdaemonSpec struct {
	// label selects the nodes that run the daemon: "key" selects the nodes that
	// have the label key, "key=value" those that have it with that value. If it is
	// empty, all nodes run the daemon. A change of label moves the pods. Key and
	// value must be valid for a label. At most 381 characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=381
	Label string `json:"label,omitempty"`

	// image is the image of the daemon, such as
	// "registry.example.com/team/agent:1.2", or one with a digest. An image with no
	// tag, or with the tag "latest", is accepted with a warning, because it can
	// change without a change of this object. Must be 1 to 1024 characters long.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`

	// imagePullPolicy defines when kubelet pulls the image of the daemon: Always,
	// IfNotPresent or Never. If it is not set, the API server's default applies: Always for
	// an image without a tag or with the tag "latest", and IfNotPresent for any other.
	//
	// +optional
	// +kubebuilder:validation:Enum="";Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// imagePullSecrets is the list of Secrets in the namespace of the object whose
	// credentials are used to pull the images of its pods. At most 16 items.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// command replaces the entrypoint of the image. It is not run in a shell. References
	// of the form $(NAME) are expanded with the environment variables of the daemon. At
	// most 1024 items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=131072
	Command []string `json:"command,omitempty"`

	// args are the arguments of the entrypoint, instead of the command of the image.
	// References of the form $(NAME) are expanded as in command. At most 1024 items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=131072
	Args []string `json:"args,omitempty"`

	// envs is the list of environment variables of the daemon. Their names must be
	// unique. At most 1024 items.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1024
	Envs []corev1.EnvVar `json:"envs,omitempty"`

	// envFrom is the list of ConfigMaps and Secrets whose keys become environment
	// variables of the daemon. If envs has a variable of the same name,
	// envs takes precedence. At most 64 items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// resources are the compute resources of the daemon. No default.
	//
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// rollingUpdate is maxUnavailable of the DaemonSet: the maximum number of nodes
	// without an available daemon during a rollout. A number of nodes from 1 to
	// 1073741823, or a percentage from 1% to 100%. Defaults to 10%.
	//
	// +optional
	// +default="10%"
	// +kubebuilder:default="10%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?%|100%|[1-9][0-9]{0,8})?$`
	RollingUpdate *intstr.IntOrString `json:"rollingUpdate,omitempty"`

	// terminationGracePeriodSeconds is the time in seconds between the TERM signal and the
	// KILL signal to the containers of a pod that is deleted, 0 to 86400. Kubernetes defaults
	// it to 30.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// podTemplate is a strategic merge patch that is applied to the generated pod
	// template: a PodTemplateSpec with all that has no field of its own, such as
	// ports, probes, volumes and tolerations. The main container has the name of
	// the Genericdaemon; its image, resources and env may not be set here, and what has
	// another field of its own may be set in one of the two places. Unknown fields are
	// refused. At most 128 KiB, as JSON.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	PodTemplate *runtime.RawExtension `json:"podTemplate,omitempty"`

	// paused suspends the reconciliation of this object: the operator writes
	// nothing for it, and its pods continue to run. Defaults to false.
	//
	// +optional
	Paused bool `json:"paused,omitempty"`

	// restartOnChange defines whether the pods are replaced, by a rollout, when the data of a ConfigMap or a Secret
	// changes that envFrom, env or a volume of the pod template refers to: Referenced or None. The controller
	// may read Secrets only where it was given the permission. Setting it, and removing it,
	// replaces the pods once. Defaults to None.
	//
	// +optional
	RestartOnChange modelv1.RestartOnChange `json:"restartOnChange,omitempty"`

	// holdChanges defines which changes wait for a window of windows: Configuration, those of the data of
	// ConfigMaps and Secrets (restartOnChange), or All, also each change of this spec that replaces pods. With
	// All, the pods keep their present template until then, and all else is applied at once; several changes
	// are one rollout. The first rollout of a new object never waits. Defaults to Configuration.
	//
	// +optional
	HoldChanges modelv1.HoldChanges `json:"holdChanges,omitempty"`

	modelv1.Windows `json:",inline"`
}

// GenericdaemonStatus defines the observed state of Genericdaemon.
type GenericdaemonStatus struct {
	// installed is the number of nodes on which the daemon is ready.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Installed int32 `json:"installed"`

	// desired is the number of nodes that should run the daemon.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Desired int32 `json:"desired"`

	// current is the number of nodes that should run the daemon and run it.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Current int32 `json:"current,omitempty"`

	// updated is the number of nodes whose daemon has the current pod template.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Updated int32 `json:"updated,omitempty"`

	// available is the number of nodes on which the daemon is available.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Available int32 `json:"available,omitempty"`

	// misscheduled is the number of nodes that run the daemon and should not run it.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Misscheduled int32 `json:"misscheduled,omitempty"`

	modelv1.ChildrenStatus `json:",inline"`
}

// Genericdaemon runs one pod on each node that has a label, as a DaemonSet of the same
// name.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=gd,categories=mbo
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desired`
// +kubebuilder:printcolumn:name="Installed",type=integer,JSONPath=`.status.installed`
// +kubebuilder:printcolumn:name="Label",type=string,JSONPath=`.spec.label`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Updated",type=integer,priority=1,JSONPath=`.status.updated`
// +kubebuilder:printcolumn:name="Misscheduled",type=integer,priority=1,JSONPath=`.status.misscheduled`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || (self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",optionalOldSelf=true,message="metadata.name must be a valid Service name: at most 63 characters, lower-case letters, digits and dashes, starting with a letter"
type Genericdaemon struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the Genericdaemon.
	//
	// +required
	Spec GenericdaemonSpec `json:"spec"`

	// status is the most recently observed state of the Genericdaemon. It is read-only.
	//
	// +optional
	Status GenericdaemonStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of status.
func (o *Genericdaemon) GetConditions() []metav1.Condition { return o.Status.Conditions }

// GetStatus returns a pointer to status.
func (o *Genericdaemon) GetStatus() any { return &o.Status }

// GenericdaemonList is a list of Genericdaemons.
//
// +kubebuilder:object:root=true
type GenericdaemonList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Genericdaemon `json:"items"`
}
