// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ResourceType names a preset of CPU and memory for the main container.
//
// +kubebuilder:validation:Enum="";small;medium;large;custom
type ResourceType string

// The presets. In each, requests equal limits, so that the pod's quality of
// service does not depend on its neighbours.
const (
	// ResourceTypeSmall is 1 CPU and 2Gi of memory.
	ResourceTypeSmall ResourceType = "small"
	// ResourceTypeMedium is 2 CPU and 4Gi of memory.
	ResourceTypeMedium ResourceType = "medium"
	// ResourceTypeLarge is 4 CPU and 8Gi of memory.
	ResourceTypeLarge ResourceType = "large"
	// ResourceTypeCustom takes what spec.resources says.
	ResourceTypeCustom ResourceType = "custom"
)

// DefaultProbes says whether admission fills in probes that were not written.
//
// +kubebuilder:validation:Enum="";Enabled;Disabled
type DefaultProbes string

const (
	// DefaultProbesEnabled fills in a TCP probe on the first TCP port.
	DefaultProbesEnabled DefaultProbes = "Enabled"
	// DefaultProbesDisabled leaves probes as they were written.
	DefaultProbesDisabled DefaultProbes = "Disabled"
)

// ModelBoxSpec is what a ModelBox should be.
//
// +kubebuilder:validation:XValidation:rule="!has(self.serviceType) || self.serviceType != 'ClusterIP' || !has(self.ports) || self.ports.all(p, !has(p.nodePort) || p.nodePort == 0)",message="nodePort may not be used if serviceType is ClusterIP; remove the nodePort or change serviceType",fieldPath=".serviceType"
type ModelBoxSpec struct {
	// name is the name of the main container in the pod: a DNS-1123 label,
	// 1 to 63 characters. Defaults to the name of the object.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Name string `json:"name,omitempty"`

	// image is the image of the main container, such as
	// "registry.example.com/team/server:1.2" or one pinned by digest. An image
	// with no tag, or with ":latest", is accepted with a warning: what runs can
	// then change without a change of this object. 1 to 1024 characters.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`

	// replicas is the number of pods, 0 to 1073741823: with as many again during a
	// rollout, they still fit the int32 that Kubernetes counts them in. Defaults to
	// 1. Served by /scale, so "kubectl scale" and a HorizontalPodAutoscaler work on
	// the ModelBox itself.
	//
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1073741823
	Replicas *int32 `json:"replicas,omitempty"`

	// resourceType is a preset of CPU and memory, requests equal to limits:
	// small is 1 CPU and 2Gi, medium 2 CPU and 4Gi, large 4 CPU and 8Gi; custom
	// takes what resources says. Defaults to custom if resources are given ({}
	// counts as given: no requests, no limits), and to small otherwise.
	//
	// +optional
	ResourceType ResourceType `json:"resourceType,omitempty"`

	// resources of the main container. Filled in from the preset; under a preset
	// anything else is refused, and under resourceType custom they are required
	// and free.
	//
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// rollingUpdate is how many pods a rollout may add and how many it may take
	// away at a time (maxSurge and maxUnavailable of the Deployment): a number
	// of pods, 1 to 1073741823 (see replicas), or a percentage of replicas from 1%
	// to 100%. Defaults to 25%.
	//
	// +optional
	// +default="25%"
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 1073741823 : self.matches('^([1-9][0-9]?%|100%|[1-9][0-9]{0,8})?$')",message="must be a number of pods from 1 to 1073741823, or a percentage from 1% to 100%"
	RollingUpdate *intstr.IntOrString `json:"rollingUpdate,omitempty"`

	// ports that the main container listens on and the Service offers, at most
	// 64. Without ports there is no Service and no default probe.
	//
	// +optional
	// +listType=map
	// +listMapKey=port
	// +listMapKey=protocol
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.size() < 2 || self.all(a, !has(a.name) || a.name == '' || self.exists_one(b, has(b.name) && b.name == a.name))",message="port names must be unique"
	// +kubebuilder:validation:XValidation:rule="self.size() < 2 || self.all(a, !has(a.nodePort) || a.nodePort == 0 || self.exists_one(b, has(b.nodePort) && b.nodePort == a.nodePort))",message="node ports must be unique"
	Ports []Port `json:"ports,omitempty"`

	// serviceType is the type of the Service: ClusterIP, NodePort or
	// LoadBalancer. Defaults to NodePort if a port has a nodePort, and to
	// ClusterIP otherwise.
	//
	// +optional
	// +kubebuilder:validation:Enum="";ClusterIP;NodePort;LoadBalancer
	ServiceType corev1.ServiceType `json:"serviceType,omitempty"`

	// envs are the environment variables of the main container, with unique
	// names, at most 1024.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1024
	Envs []corev1.EnvVar `json:"envs,omitempty"`

	// envFrom are ConfigMaps and Secrets whose keys become environment variables
	// of the main container, at most 64. Where a name occurs twice, envs win.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// readinessProbe says when the main container may get traffic, with exactly
	// one of exec, httpGet, tcpSocket and grpc. Defaults to a TCP probe on the
	// first TCP port, if there is one; a probe without an action gets that one.
	//
	// +optional
	ReadinessProbe *corev1.Probe `json:"readinessProbe,omitempty"`

	// livenessProbe says when the main container must be restarted, with exactly
	// one of exec, httpGet, tcpSocket and grpc. Defaults to a TCP probe on the
	// first TCP port, if there is one; a probe without an action gets that one.
	//
	// +optional
	LivenessProbe *corev1.Probe `json:"livenessProbe,omitempty"`

	// startupProbe holds the other probes back until the main container has
	// started, with exactly one of exec, httpGet, tcpSocket and grpc. Has no
	// default: a model that takes long to load wants one.
	//
	// +optional
	StartupProbe *corev1.Probe `json:"startupProbe,omitempty"`

	// defaultProbes says whether readinessProbe and livenessProbe are filled in
	// when they are not written: Enabled or Disabled. Defaults to Enabled.
	//
	// +optional
	// +default="Enabled"
	// +kubebuilder:default=Enabled
	DefaultProbes DefaultProbes `json:"defaultProbes,omitempty"`

	// podTemplate is the door to everything else that a Pod has: a
	// PodTemplateSpec that is merged over the generated one by Kubernetes'
	// strategic merge, so init containers, sidecars, volumes, tolerations, a
	// service account or a security context go here. The main container is the
	// one called as spec.name says; its image, resources, ports, env, envFrom
	// and probes stay with their own fields. Unknown fields are refused.
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

// Port is one port of the main container and of the Service.
type Port struct {
	// name of the port, unique in the object: lower-case letters, digits and
	// single dashes, at least one letter, 1 to 15 characters (RFC 6335). When
	// there are several ports it defaults to protocol and number, such as
	// tcp-80.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^(([a-z0-9]+-)*[a-z0-9]+)?$`
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('[a-z]')",message="must contain at least one letter (a-z)"
	Name string `json:"name,omitempty"`

	// port that the Service offers, 1 to 65535; unique together with protocol.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// targetPort is the port that the container listens on: a number from 1 to
	// 65535, or the name of a port of some container of the pod. Defaults to
	// port.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 65535 : self == '' || self.matches('^([a-z0-9]+-)*[a-z0-9]+$') && self.matches('[a-z]')",message="must be a number from 1 to 65535 or the name of a container port"
	TargetPort *intstr.IntOrString `json:"targetPort,omitempty"`

	// nodePort is the port on every node, 1 to 65535, within the range that the
	// cluster allows (30000 to 32767 unless its owner changed it); unique in the
	// object. Without it, or with 0, the cluster chooses one if serviceType needs
	// one, and keeps it.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	NodePort int32 `json:"nodePort,omitempty"`

	// protocol is TCP, UDP or SCTP. Defaults to TCP.
	//
	// +optional
	// +default="TCP"
	// +kubebuilder:default=TCP
	// +kubebuilder:validation:Enum="";TCP;UDP;SCTP
	Protocol corev1.Protocol `json:"protocol,omitempty"`

	// appProtocol is a hint for load balancers and meshes: an IANA service name
	// or a prefixed name such as kubernetes.io/h2c. At most 253 characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	AppProtocol *string `json:"appProtocol,omitempty"`
}

// WorkloadStatus is what was seen of a Deployment and of its Service.
type WorkloadStatus struct {
	// observedGeneration is the metadata.generation that this status describes.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of pods that exist, ready or not.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Replicas int32 `json:"replicas,omitempty"`

	// readyReplicas is the number of pods that are ready.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// updatedReplicas is the number of pods that run the current template.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`

	// availableReplicas is the number of pods that have been ready for
	// minReadySeconds.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// unavailableReplicas is the number of pods that are still to become
	// available.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty"`

	// selector selects the pods, as text; /scale serves it to autoscalers.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1572864
	Selector string `json:"selector,omitempty"`

	// address is where the first port is served within the cluster:
	// name.namespace.svc:port. Empty without ports.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Address string `json:"address,omitempty"`

	// conditions: Ready from the first reconcile on; Reconciling, Stalled and
	// Paused are present only while they are true.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ModelBoxStatus is what was seen of a ModelBox.
type ModelBoxStatus struct {
	WorkloadStatus `json:",inline"`
}

// ModelBox is a model server in a box: an image with a size preset, probes, a
// rollout and ports becomes a Deployment and a Service of the same name.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=mb,categories=mbo
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Size",type=string,priority=1,JSONPath=`.spec.resourceType`
// +kubebuilder:printcolumn:name="Updated",type=integer,priority=1,JSONPath=`.status.updatedReplicas`
// +kubebuilder:printcolumn:name="Service",type=string,priority=1,JSONPath=`.spec.serviceType`
// +kubebuilder:printcolumn:name="Address",type=string,priority=1,JSONPath=`.status.address`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || (self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",optionalOldSelf=true,message="metadata.name must be a valid Service name: at most 63 characters, lower-case letters, digits and dashes, starting with a letter"
type ModelBox struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the ModelBox should be.
	//
	// +required
	Spec ModelBoxSpec `json:"spec"`

	// status is what was seen of it.
	//
	// +optional
	Status ModelBoxStatus `json:"status,omitempty"`
}

// GetConditions returns what status says of the object.
func (o *ModelBox) GetConditions() []metav1.Condition { return o.Status.Conditions }

// GetStatus returns status, to be read or encoded.
func (o *ModelBox) GetStatus() any { return &o.Status }

// ModelBoxList is a list of ModelBoxes.
//
// +kubebuilder:object:root=true
type ModelBoxList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ModelBox `json:"items"`
}
