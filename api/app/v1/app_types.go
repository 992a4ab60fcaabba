// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// AppSpec defines the desired state of App.
//
// +kubebuilder:validation:XValidation:rule="has(self.selector) == has(oldSelf.selector) && (!has(self.selector) || self.selector == oldSelf.selector)",message="cannot be set, changed or removed after creation, because that of a Deployment cannot",fieldPath=".selector"
// +kubebuilder:validation:XValidation:rule=`(has(self.service) && has(self.service.name) ? self.service.name : "") == (has(oldSelf.service) && has(oldSelf.service.name) ? oldSelf.service.name : "")`,message="cannot be set, changed or removed after creation, because that of a Service cannot",fieldPath=".service.name"
// +kubebuilder:validation:XValidation:rule="!has(self.autoscaling) || !has(self.schedules) || self.schedules.size() == 0",message="may not be set together with schedules, because both set replicas; remove one of them",fieldPath=".autoscaling"
type AppSpec struct {
	// name is the name of the main container. Must be a DNS-1123 label of at most
	// 63 characters. Without it, the main container has the name of the object.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Name string `json:"name,omitempty"`

	// replicas is the desired number of pods, 0 to 1073741823 (with as many again
	// during a rollout, they fit the int32 that Kubernetes counts them in).
	// Defaults to 1. The scale subresource serves it, so that "kubectl scale" and a
	// HorizontalPodAutoscaler work on the App itself.
	//
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1073741823
	Replicas *int32 `json:"replicas,omitempty"`

	// schedules set replicas at scheduled times: from each time on, its number applies until the next one,
	// unless another client sets another number in between. If several have the same time, the last in the
	// list applies. A manifest with schedules should not set replicas: the last time that has passed sets it. At most 32 items.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Schedules []modelv1.Schedule `json:"schedules,omitempty"`

	// image is the image of the main container, such as
	// "registry.example.com/team/server:1.2", or one with a digest. An image with no
	// tag, or with the tag "latest", is accepted with a warning, because it can
	// change without a change of this object. Must be 1 to 1024 characters long.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`

	// imagePullPolicy defines when kubelet pulls the image of the main container: Always,
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
	// of the form $(NAME) are expanded with the environment variables of the container. At
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

	// resources are the compute resources of the main container. No default.
	//
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// envs is the list of environment variables of the main container. Their
	// names must be unique. At most 1024 items.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1024
	Envs []corev1.EnvVar `json:"envs,omitempty"`

	// envFrom is the list of ConfigMaps and Secrets whose keys become environment
	// variables of the main container. If envs has a variable of the same name,
	// envs takes precedence. At most 64 items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// strategy is the strategy of the Deployment: {type: Recreate}, or {rollingUpdate: {maxSurge,
	// maxUnavailable}}, of which one may be 0, but not both. A rollout that may create no pod
	// above replicas needs no spare resources, such as an accelerator: {rollingUpdate: {maxSurge:
	// 0, maxUnavailable: 1}}. Kubernetes defaults it to a rolling update of 25%.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type in ['', 'RollingUpdate', 'Recreate']",message="must be RollingUpdate or Recreate",fieldPath=".type"
	// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Recreate' || !has(self.rollingUpdate)",message="may not be set if type is Recreate; remove rollingUpdate, or set type: RollingUpdate",fieldPath=".rollingUpdate"
	// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdate) || !has(self.rollingUpdate.maxSurge) || !has(self.rollingUpdate.maxUnavailable) || (self.rollingUpdate.maxSurge != 0 && self.rollingUpdate.maxSurge != '0%') || (self.rollingUpdate.maxUnavailable != 0 && self.rollingUpdate.maxUnavailable != '0%')",message="maxSurge and maxUnavailable may not both be 0, because no rollout could begin",fieldPath=".rollingUpdate"
	Strategy *appsv1.DeploymentStrategy `json:"strategy,omitempty"`

	// progressDeadlineSeconds is the time in seconds in which a rollout must progress, after
	// which the object is Stalled. A pod that becomes available is progress. Must be from 1
	// to 86400. Kubernetes defaults it to 600.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// ports is the list of ports that the main container listens on and the
	// Service exposes. Without ports, there is no Service. The type of the Service
	// is NodePort if a port has a nodePort, and ClusterIP otherwise. At most 64
	// items.
	//
	// +optional
	// +listType=map
	// +listMapKey=port
	// +listMapKey=protocol
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.size() < 2 || self.all(a, !has(a.name) || a.name == '' || self.exists_one(b, has(b.name) && b.name == a.name))",message="port names must be unique"
	// +kubebuilder:validation:XValidation:rule="self.size() < 2 || self.all(a, !has(a.nodePort) || a.nodePort == 0 || self.exists_one(b, has(b.nodePort) && b.nodePort == a.nodePort))",message="node ports must be unique"
	Ports []modelv1.Port `json:"ports,omitempty"`

	// scheduling defines which nodes the pods may run on, and how: node selector, tolerations,
	// runtime class, priority class and scheduler, and labels of the pods. No default.
	//
	// +optional
	Scheduling *modelv1.Scheduling `json:"scheduling,omitempty"`

	modelv1.Children `json:",inline"`

	// podTemplate is a strategic merge patch that is applied to the generated pod
	// template: a PodTemplateSpec with all that has no field of its own, such as
	// probes, init containers, sidecars and volumes. The main container has the
	// name of spec.name, or of the App; its image, resources, ports and env may not be set here, and
	// what has another field of its own may be set in one of the two places. Unknown
	// fields are refused. At most 128 KiB, as JSON.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	PodTemplate *runtime.RawExtension `json:"podTemplate,omitempty"`

	// selector are the labels that select the pods, instead of those of the operator: it is
	// the selector of an existing Deployment, and only "modelbox adopt" sets it. With it, the
	// Service and the Deployment select by exactly these labels, and the operator adds to the
	// pod template neither labels nor the ports of the Service: podTemplate must have the
	// labels of the selector, and may have the ports of the main container. It cannot be set,
	// changed or removed after creation. 1 to 64 labels.
	//
	// +optional
	// +mapType=atomic
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.size() <= 317)",message="the key of a label has at most 317 characters"
	Selector map[string]modelv1.LabelValue `json:"selector,omitempty"`

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

// AppStatus defines the observed state of App.
type AppStatus struct {
	modelv1.WorkloadStatus `json:",inline"`
}

// App runs an image as a Deployment, with a Service of the same name. It is the plain
// form of a ModelBox: it has neither resource presets nor default probes.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=happ,categories=mbo
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Updated",type=integer,priority=1,JSONPath=`.status.updatedReplicas`
// +kubebuilder:printcolumn:name="Address",type=string,priority=1,JSONPath=`.status.address`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || (self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",optionalOldSelf=true,message="metadata.name must be a valid Service name: at most 63 characters, lower-case letters, digits and dashes, starting with a letter"
// +kubebuilder:validation:XValidation:rule=`!has(self.spec.route) || !has(self.spec.route.split) || self.spec.route.split.all(s, s.name != (has(self.spec.service) && has(self.spec.service.name) && self.spec.service.name != "" ? self.spec.service.name : self.metadata.name))`,message="may not name the Service of the object itself, which has what remains of 100 percent",fieldPath=".spec.route.split"
type App struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the App.
	//
	// +required
	Spec AppSpec `json:"spec"`

	// status is the most recently observed state of the App. It is read-only.
	//
	// +optional
	Status AppStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of status.
func (o *App) GetConditions() []metav1.Condition { return o.Status.Conditions }

// GetStatus returns a pointer to status.
func (o *App) GetStatus() any { return &o.Status }

// ServiceName returns the name of the Service.
func (o *App) ServiceName() string { return o.Spec.ServiceName(o.Name) }

// AppList is a list of Apps.
//
// +kubebuilder:object:root=true
type AppList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []App `json:"items"`
}
