// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// UnitedDeploymentSpec defines the desired state of UnitedDeployment.
type UnitedDeploymentSpec struct {
	// deploymentName is the name of the Deployment that is scaled, in the same
	// namespace. Must be a DNS-1123 subdomain of 1 to 253 characters.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	DeploymentName string `json:"deploymentName"`

	// replicas is the desired number of replicas of the Deployment, 0 to
	// 2147483647. The scale subresource serves it.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Replicas *int32 `json:"replicas"`

	// schedules set replicas at scheduled times: from each time on, its number applies until the next one,
	// unless another client sets another number in between. If several have the same time, the last in the
	// list applies. The last time that has passed when schedules are set applies at once. At most 32 items.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Schedules []modelv1.Schedule `json:"schedules,omitempty"`
}

// UnitedDeploymentStatus defines the observed state of UnitedDeployment.
type UnitedDeploymentStatus struct {
	// observedGeneration is the most recent metadata.generation that the
	// controller has observed.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of pods of the Deployment, ready or not.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Replicas int32 `json:"replicas,omitempty"`

	// readyReplicas is the number of pods of the Deployment that are ready.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is the number of pods of the Deployment that are available.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	AvailableReplicas int32 `json:"availableReplicas"`

	// selector is the label selector of the Deployment's pods, in string form. The
	// scale subresource serves it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1572864
	Selector string `json:"selector,omitempty"`

	// conditions are the latest available observations of the object's state.
	// Ready is present from the first reconcile on; Reconciling and Stalled are
	// present only while they are true.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// schedule is the scheduled time whose number of replicas applies, and the next ones. Present only with
	// spec.schedules.
	//
	// +optional
	Schedule *modelv1.ScheduleStatus `json:"schedule,omitempty"`
}

// UnitedDeployment sets the number of replicas of an existing Deployment, through its
// scale subresource. It writes nothing while another controller scales the Deployment.
// Deleting it does not change the number of replicas.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=xud,categories=mbo
// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the group is given by the users of this kind and is not part of Kubernetes"
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec.deploymentName`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || (self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",optionalOldSelf=true,message="metadata.name must be a valid Service name: at most 63 characters, lower-case letters, digits and dashes, starting with a letter"
type UnitedDeployment struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the UnitedDeployment.
	//
	// +required
	Spec UnitedDeploymentSpec `json:"spec"`

	// status is the most recently observed state of the UnitedDeployment. It is read-only.
	//
	// +optional
	Status UnitedDeploymentStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of status.
func (o *UnitedDeployment) GetConditions() []metav1.Condition { return o.Status.Conditions }

// GetStatus returns a pointer to status.
func (o *UnitedDeployment) GetStatus() any { return &o.Status }

// UnitedDeploymentList is a list of UnitedDeployments.
//
// +kubebuilder:object:root=true
type UnitedDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []UnitedDeployment `json:"items"`
}
