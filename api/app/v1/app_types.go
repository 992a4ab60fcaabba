// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// AppSpec is what an App should be.
type AppSpec struct {
	// replicas is the number of pods, 0 to 1073741823: with as many again during a
	// rollout, they still fit the int32 that Kubernetes counts them in. Defaults to
	// 1. Served by /scale, so "kubectl scale" and a HorizontalPodAutoscaler work on
	// the App itself.
	//
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1073741823
	Replicas *int32 `json:"replicas,omitempty"`

	// image is the image of the main container, such as
	// "registry.example.com/team/server:1.2" or one pinned by digest. An image
	// with no tag, or with ":latest", is accepted with a warning: what runs can
	// then change without a change of this object. 1 to 1024 characters.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`

	// resources of the main container. There is no default: what is written is
	// what runs.
	//
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// envs are the environment variables of the main container, with unique
	// names, at most 1024.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1024
	Envs []corev1.EnvVar `json:"envs,omitempty"`

	// ports that the main container listens on and the Service offers, at most
	// 64. Without ports there is no Service; with a nodePort among them its type
	// is NodePort, otherwise ClusterIP.
	//
	// +optional
	// +listType=map
	// +listMapKey=port
	// +listMapKey=protocol
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.size() < 2 || self.all(a, !has(a.name) || a.name == '' || self.exists_one(b, has(b.name) && b.name == a.name))",message="port names must be unique"
	// +kubebuilder:validation:XValidation:rule="self.size() < 2 || self.all(a, !has(a.nodePort) || a.nodePort == 0 || self.exists_one(b, has(b.nodePort) && b.nodePort == a.nodePort))",message="node ports must be unique"
	Ports []modelv1.Port `json:"ports,omitempty"`

	// podTemplate is the door to everything else that a Pod has: a
	// PodTemplateSpec that is merged over the generated one by Kubernetes'
	// strategic merge. The main container is the one called as the App; its
	// image, resources, ports and env stay with their own fields, its probes are
	// written here. Unknown fields are refused.
	// At most 128 KiB, as JSON.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	PodTemplate *runtime.RawExtension `json:"podTemplate,omitempty"`

	// paused stops the operator from writing anything for this object; what
	// runs goes on running. Defaults to false.
	//
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// AppStatus is what was seen of an App.
type AppStatus struct {
	modelv1.WorkloadStatus `json:",inline"`
}

// App is the plain form of a ModelBox: image, env, ports and resources become a
// Deployment and a Service of the same name. No presets and no injected probes:
// what is written is what runs.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=happ,categories=mbo
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Updated",type=integer,priority=1,JSONPath=`.status.updatedReplicas`
// +kubebuilder:printcolumn:name="Address",type=string,priority=1,JSONPath=`.status.address`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || (self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",optionalOldSelf=true,message="metadata.name must be a valid Service name: at most 63 characters, lower-case letters, digits and dashes, starting with a letter"
type App struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the App should be.
	//
	// +required
	Spec AppSpec `json:"spec"`

	// status is what was seen of it.
	//
	// +optional
	Status AppStatus `json:"status,omitempty"`
}

// GetConditions returns what status says of the object.
func (o *App) GetConditions() []metav1.Condition { return o.Status.Conditions }

// GetStatus returns status, to be read or encoded.
func (o *App) GetStatus() any { return &o.Status }

// AppList is a list of Apps.
//
// +kubebuilder:object:root=true
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []App `json:"items"`
}
