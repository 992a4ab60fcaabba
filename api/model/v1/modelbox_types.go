// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ResourceType names a preset of CPU and memory for the main container, or a size of the cluster.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
type ResourceType string

// The resource types. In each preset, requests equal limits, so that the pods have the
// quality of service class Guaranteed.
const (
	// ResourceTypeSmall is 1 CPU and 2Gi of memory.
	ResourceTypeSmall ResourceType = "small"
	// ResourceTypeMedium is 2 CPU and 4Gi of memory.
	ResourceTypeMedium ResourceType = "medium"
	// ResourceTypeLarge is 4 CPU and 8Gi of memory.
	ResourceTypeLarge ResourceType = "large"
	// ResourceTypeCustom uses spec.resources.
	ResourceTypeCustom ResourceType = "custom"
)

// ResizeAnnotation is the annotation of a ModelBox by which an update asks for all current values of its
// size, the image included. Its value is metadata.generation of the object that the client has read, so
// that it has no effect on later updates.
const ResizeAnnotation = "modelbox-operator.github.io/resize"

// DefaultProbes defines whether admission sets probes that are not specified.
//
// +kubebuilder:validation:Enum="";Enabled;Disabled
type DefaultProbes string

const (
	// DefaultProbesEnabled sets TCP probes on the first TCP port.
	DefaultProbesEnabled DefaultProbes = "Enabled"
	// DefaultProbesDisabled sets no probes.
	DefaultProbesDisabled DefaultProbes = "Disabled"
)

// RestartOnChange defines whether pods are replaced when what they read changes.
//
// +kubebuilder:validation:Enum="";Referenced;None
type RestartOnChange string

const (
	// RestartOnChangeReferenced replaces the pods when the data of a ConfigMap or a Secret changes that the
	// pod template refers to.
	RestartOnChangeReferenced RestartOnChange = "Referenced"
	// RestartOnChangeNone replaces no pods.
	RestartOnChangeNone RestartOnChange = "None"
)

// HoldChanges defines which changes wait for a window of the spec.
//
// +kubebuilder:validation:Enum="";Configuration;All
type HoldChanges string

const (
	// HoldChangesConfiguration makes only changed data of ConfigMaps and Secrets wait.
	HoldChangesConfiguration HoldChanges = "Configuration"
	// HoldChangesAll makes each change wait that replaces pods.
	HoldChangesAll HoldChanges = "All"
)

// ModelBoxSpec defines the desired state of ModelBox.
//
// +kubebuilder:validation:XValidation:rule="has(self.image) || has(self.resourceType) && self.resourceType.size() > 0",message="must be set, such as registry.example.com/team/server:1.2, unless resourceType names a size with a server",fieldPath=".image"
// +kubebuilder:validation:XValidation:rule="!has(self.serviceType) || self.serviceType != 'ClusterIP' || !has(self.ports) || self.ports.all(p, !has(p.nodePort) || p.nodePort == 0)",message="nodePort may not be used if serviceType is ClusterIP; remove the nodePort or change serviceType",fieldPath=".serviceType"
// +kubebuilder:validation:XValidation:rule="!has(self.modelFileURL) || self.modelFileURL.size() == 0 || !has(self.model) || !has(self.model.uri) || self.model.uri.size() == 0 || self.model.uri == self.modelFileURL",message="is an alias of model.uri, which has another value; remove one of them",fieldPath=".modelFileURL"
// +kubebuilder:validation:XValidation:rule="!has(self.model) || (has(self.model.uri) && self.model.uri.size() > 0) || (has(self.modelFileURL) && self.modelFileURL.size() > 0)",message="must have a uri, such as https://models.example.com/bert.tar.zst; set it, or remove model",fieldPath=".model"
// +kubebuilder:validation:XValidation:rule="!has(self.modelFileURL) || !self.modelFileURL.startsWith('http://') || (has(self.model) && has(self.model.sha256) && self.model.sha256.size() > 0)",message="needs model.sha256 for http://, because nothing else protects what is fetched; set it, or use https://",fieldPath=".modelFileURL"
// +kubebuilder:validation:XValidation:rule="!has(self.models) || !has(self.model) || !has(self.model.mountPath) || self.models.all(m, !has(m.mountPath) || !(m.mountPath + '/').startsWith(self.model.mountPath + '/') && !(self.model.mountPath + '/').startsWith(m.mountPath + '/'))",message="no mount path may be that of model, or below or above it",fieldPath=".models"
// +kubebuilder:validation:XValidation:rule="!has(self.modelFileURL) || !self.modelFileURL.startsWith('oci://') || self.modelFileURL.matches('@sha256:[0-9a-f]{64}$')",message="oci:// needs the digest of the image, such as oci://registry.example.com/team/model@sha256:...",fieldPath=".modelFileURL"
// +kubebuilder:validation:XValidation:rule="has(self.selector) == has(oldSelf.selector) && (!has(self.selector) || self.selector == oldSelf.selector)",message="cannot be set, changed or removed after creation, because that of a Deployment cannot",fieldPath=".selector"
// +kubebuilder:validation:XValidation:rule=`(has(self.service) && has(self.service.name) ? self.service.name : "") == (has(oldSelf.service) && has(oldSelf.service.name) ? oldSelf.service.name : "")`,message="cannot be set, changed or removed after creation, because that of a Service cannot",fieldPath=".service.name"
// +kubebuilder:validation:XValidation:rule="!has(self.autoscaling) || !has(self.schedules) || self.schedules.size() == 0",message="may not be set together with schedules, because both set replicas; remove one of them",fieldPath=".autoscaling"
type ModelBoxSpec struct {
	// name is the name of the main container. Must be a DNS-1123 label of at most
	// 63 characters. Defaults to the name of the object.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Name string `json:"name,omitempty"`

	// image is the image of the main container, such as
	// "registry.example.com/team/server:1.2", or one with a digest. An image with no
	// tag, or with the tag "latest", is accepted with a warning, because it can
	// change without a change of this object. Must be 1 to 1024 characters long. Required,
	// unless resourceType names a size with a server, of which admission sets the image.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image,omitempty"`

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

	// replicas is the desired number of pods, 0 to 1073741823 (with as many again
	// during a rollout, they fit the int32 that Kubernetes counts them in).
	// Defaults to 1. The scale subresource serves it, so that "kubectl scale" and a
	// HorizontalPodAutoscaler work on the ModelBox itself.
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
	Schedules []Schedule `json:"schedules,omitempty"`

	// resourceType is a preset of CPU and memory, with requests equal to limits:
	// small (1 CPU, 2Gi), medium (2 CPU, 4Gi) or large (4 CPU, 8Gi), or the name of a
	// size that the platform of the cluster defines, of which admission sets resources,
	// scheduling, sharedMemory, strategy and the server. With custom, the main container has the
	// requests and limits of resources. At most 63 characters, a DNS-1123 label.
	// Defaults to custom if resources is set (also to {}, which means no requests and no
	// limits), and to small otherwise.
	//
	// +optional
	ResourceType ResourceType `json:"resourceType,omitempty"`

	// resources are the compute resources of the main container. CPU and memory default
	// to the preset of resourceType, and other values than those of the preset are
	// refused. Other resources, such as nvidia.com/gpu, and claims may be set together
	// with a preset. Required if resourceType is custom.
	//
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// sharedMemory is the size of a volume in memory that is mounted at /dev/shm of the
	// main container, whose size is 64Mi otherwise. What is stored there counts against the
	// memory limit of the container, so a larger size than that limit is refused. Must be
	// greater than 0.
	//
	// +optional
	SharedMemory *resource.Quantity `json:"sharedMemory,omitempty"`

	// rollingUpdate is maxSurge and maxUnavailable of the Deployment: the maximum
	// number of pods that a rollout may create above replicas, and the maximum
	// number that may be unavailable during it. A number of pods from 1 to
	// 1073741823, or a percentage of replicas from 1% to 100%. Defaults to 25%. If
	// strategy is set, the default has no effect, and any other value is refused.
	//
	// +optional
	// +default="25%"
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?%|100%|[1-9][0-9]{0,8})?$`
	RollingUpdate *intstr.IntOrString `json:"rollingUpdate,omitempty"`

	// strategy is the strategy of the Deployment, for rollouts that rollingUpdate cannot
	// express: {type: Recreate}, or {rollingUpdate: {maxSurge, maxUnavailable}}, of which
	// one may be 0, but not both. A rollout that may create no pod above replicas needs
	// no spare resources, such as an accelerator: {rollingUpdate: {maxSurge: 0,
	// maxUnavailable: 1}}. No default.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type in ['', 'RollingUpdate', 'Recreate']",message="must be RollingUpdate or Recreate",fieldPath=".type"
	// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Recreate' || !has(self.rollingUpdate)",message="may not be set if type is Recreate; remove rollingUpdate, or set type: RollingUpdate",fieldPath=".rollingUpdate"
	// +kubebuilder:validation:XValidation:rule="!has(self.rollingUpdate) || !has(self.rollingUpdate.maxSurge) || !has(self.rollingUpdate.maxUnavailable) || (self.rollingUpdate.maxSurge != 0 && self.rollingUpdate.maxSurge != '0%') || (self.rollingUpdate.maxUnavailable != 0 && self.rollingUpdate.maxUnavailable != '0%')",message="maxSurge and maxUnavailable may not both be 0, because no rollout could begin",fieldPath=".rollingUpdate"
	Strategy *appsv1.DeploymentStrategy `json:"strategy,omitempty"`

	// progressDeadlineSeconds is the time in seconds in which a rollout must progress, after
	// which the object is Stalled. A pod that becomes available is progress. Must be from 4
	// (more than the default of minReadySeconds) to 86400. Defaults to 600 and the time that
	// startupProbe gives a container to start, if there is one.
	//
	// +optional
	// +kubebuilder:validation:Minimum=4
	// +kubebuilder:validation:Maximum=86400
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`

	// terminationGracePeriodSeconds is the time in seconds between the TERM signal and the
	// KILL signal to the containers of a pod that is deleted, 0 to 86400. Kubernetes defaults
	// it to 30.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// ports is the list of ports that the main container listens on and the
	// Service exposes. Without ports, there is no Service and no default probe. At
	// most 64 items.
	//
	// +optional
	// +listType=map
	// +listMapKey=port
	// +listMapKey=protocol
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.size() < 2 || self.all(a, !has(a.name) || a.name == '' || self.exists_one(b, has(b.name) && b.name == a.name))",message="port names must be unique"
	// +kubebuilder:validation:XValidation:rule="self.size() < 2 || self.all(a, !has(a.nodePort) || a.nodePort == 0 || self.exists_one(b, has(b.nodePort) && b.nodePort == a.nodePort))",message="node ports must be unique"
	Ports []Port `json:"ports,omitempty"`

	// serviceType is the type of the Service: ClusterIP, NodePort or LoadBalancer.
	// Defaults to NodePort if a port has a nodePort, and to ClusterIP otherwise.
	//
	// +optional
	// +kubebuilder:validation:Enum="";ClusterIP;NodePort;LoadBalancer
	ServiceType corev1.ServiceType `json:"serviceType,omitempty"`

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

	// readinessProbe is the probe of whether the main container is ready to
	// receive traffic. Must specify exactly one of exec, httpGet, tcpSocket and
	// grpc. Defaults to a TCP probe on the first TCP port, if there is one; so does
	// the action of a probe that specifies none.
	//
	// +optional
	ReadinessProbe *corev1.Probe `json:"readinessProbe,omitempty"`

	// livenessProbe is the probe of whether the main container is alive; it is
	// restarted if the probe fails. Must specify exactly one of exec, httpGet,
	// tcpSocket and grpc. Defaults to a TCP probe on the first TCP port, if there is
	// one; so does the action of a probe that specifies none.
	//
	// +optional
	LivenessProbe *corev1.Probe `json:"livenessProbe,omitempty"`

	// startupProbe is the probe of whether the main container has started; the
	// other probes do not run before it succeeds. Must specify exactly one of exec,
	// httpGet, tcpSocket and grpc. If the action of livenessProbe is a default, defaults to
	// the same action every 2 seconds, 900 times: a server that takes up to 30 minutes to
	// load a model is not restarted.
	//
	// +optional
	StartupProbe *corev1.Probe `json:"startupProbe,omitempty"`

	// defaultProbes defines whether readinessProbe, livenessProbe and startupProbe have a
	// default: Enabled or Disabled. Defaults to Enabled.
	//
	// +optional
	DefaultProbes DefaultProbes `json:"defaultProbes,omitempty"`

	// model is the model that the pods serve. It is fetched, verified and unpacked before any
	// other container of a pod starts. No default.
	//
	// +optional
	Model *Model `json:"model,omitempty"`

	// models are further models, such as adapters, tokenizers and draft models. The same container
	// fetches them, after model and in their order. Names and mount paths must be unique, and no
	// mount path may be below another one, or that of model. At most 8 items.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(m, has(m.uri) && m.uri.size() > 0)",message="each must have a uri, such as https://models.example.com/bert.tar.zst"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.mountPath) || self.all(b, a.name == b.name || !has(b.mountPath) || !(a.mountPath + '/').startsWith(b.mountPath + '/')))",message="mount paths must be unique, and none may be below another one"
	Models []NamedModel `json:"models,omitempty"`

	// modelFileURL is an alias of model.uri. If both are set, they must be the same. At most 2048
	// characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^((https|http|s3|hf|oci|pvc)://.*)?$`
	ModelFileURL string `json:"modelFileURL,omitempty"`

	// scheduling defines which nodes the pods may run on, and how: node selector, tolerations,
	// runtime class, priority class and scheduler, and labels of the pods. No default.
	//
	// +optional
	Scheduling *Scheduling `json:"scheduling,omitempty"`

	Children `json:",inline"`

	// podTemplate is a strategic merge patch that is applied to the generated pod
	// template: a PodTemplateSpec with all that has no field of its own, such as
	// init containers, sidecars, volumes, affinity, a service account or a
	// security context. The main container has the name of spec.name; its image,
	// resources, ports, env, envFrom and probes may not be set here, and what has another
	// field of its own may be set in one of the two places. Unknown fields are refused. At
	// most 128 KiB, as JSON.
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
	Selector map[string]LabelValue `json:"selector,omitempty"`

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
	RestartOnChange RestartOnChange `json:"restartOnChange,omitempty"`

	// holdChanges defines which changes wait for a window of windows: Configuration, those of the data of
	// ConfigMaps and Secrets (restartOnChange), or All, also each change of this spec that replaces pods. With
	// All, the pods keep their present template until then, and all else is applied at once; several changes
	// are one rollout. The first rollout of a new object never waits. Defaults to Configuration.
	//
	// +optional
	HoldChanges HoldChanges `json:"holdChanges,omitempty"`

	Windows `json:",inline"`
}

// LabelValue is the value of a label, of at most 63 characters.
//
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// Port is a port of the main container and of the Service.
type Port struct {
	// name is the name of the port, unique in the object: 1 to 15 lower-case
	// letters, digits and single dashes, with at least one letter (RFC 6335).
	// Defaults to protocol and number, such as tcp-80, if there are several ports.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^(([a-z0-9]+-)*[a-z0-9]+)?$`
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('[a-z]')",message="must contain at least one letter (a-z)"
	Name string `json:"name,omitempty"`

	// port is the port that the Service exposes, 1 to 65535. Port and protocol
	// together must be unique.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`

	// targetPort is the port that the container listens on: a number from 1 to
	// 65535, or the name of a port of any container of the pod. Defaults to port.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^(([a-z0-9]+-)*[0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*)?$`
	TargetPort *intstr.IntOrString `json:"targetPort,omitempty"`

	// nodePort is the port on each node, 1 to 65535 and in the cluster's range for
	// node ports (by default 30000 to 32767). Must be unique in the object. If it is
	// not set or 0, Kubernetes allocates a port if serviceType requires one, and
	// the port remains allocated.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	NodePort int32 `json:"nodePort,omitempty"`

	// protocol is the IP protocol of the port: TCP, UDP or SCTP. Defaults to TCP.
	//
	// +optional
	// +default="TCP"
	// +kubebuilder:default=TCP
	// +kubebuilder:validation:Enum="";TCP;UDP;SCTP
	Protocol corev1.Protocol `json:"protocol,omitempty"`

	// appProtocol is the application protocol of the port, a hint for load
	// balancers and service meshes: an IANA service name or a prefixed name such as
	// kubernetes.io/h2c. At most 253 characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	AppProtocol *string `json:"appProtocol,omitempty"`
}

// WorkloadStatus is the observed state of a Deployment and its Service.
type WorkloadStatus struct {
	// replicas is the number of pods of the Deployment, ready or not.
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

	// updatedReplicas is the number of pods that have the current pod template.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	UpdatedReplicas int32 `json:"updatedReplicas,omitempty"`

	// availableReplicas is the number of pods that have been ready for at least
	// minReadySeconds.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// unavailableReplicas is the number of pods that are still required for the
	// Deployment to have all its replicas available.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	UnavailableReplicas int32 `json:"unavailableReplicas,omitempty"`

	// terminatingReplicas is the number of pods of the Deployment that are being deleted
	// and still exist.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TerminatingReplicas *int32 `json:"terminatingReplicas,omitempty"`

	// collisionCount is the number of times that the name of a new ReplicaSet was taken.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// selector is the label selector of the pods, in string form. The scale
	// subresource serves it to autoscalers.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1572864
	Selector string `json:"selector,omitempty"`

	// address is the address of the first port in the cluster, as
	// name.namespace.svc:port. Empty if there are no ports.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Address string `json:"address,omitempty"`

	// url is the address from outside of the cluster, as scheme://host/path of spec.route: the first host that has no *.
	// Empty until a Gateway has accepted the HTTPRoute: as it is now, if it says of which spec.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1300
	URL string `json:"url,omitempty"`

	// rollout is the last complete rollout, and the one after it. Present only with spec.onFailedRollout: Return.
	//
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// schedule is the scheduled time whose number of replicas applies, and the next ones. Present only with
	// spec.schedules.
	//
	// +optional
	Schedule *ScheduleStatus `json:"schedule,omitempty"`

	ChildrenStatus `json:",inline"`
}

// Problem is a reason why pods are not available, in the words of the cluster.
type Problem struct {
	// container is the name of the container with the problem. Empty if the problem is one
	// of the pods as a whole, or if no pod can be created.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Container string `json:"container,omitempty"`

	// reason is one word in CamelCase, such as ImagePullBackOff, CrashLoopBackOff or
	// Unschedulable.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason"`

	// message is the cluster's own message, and what is known of the cause. At most 1024
	// characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// since is the time from which on the first of the pods has had the problem.
	//
	// +optional
	Since metav1.Time `json:"since,omitzero"`

	// count is the number of pods that have the problem, 0 if no pod can be created.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Count int32 `json:"count,omitempty"`
}

// ModelBoxStatus defines the observed state of ModelBox.
type ModelBoxStatus struct {
	WorkloadStatus `json:",inline"`

	// fetcher is what fetches the model in the pods, as it was applied last. Another version of
	// the operator keeps it until the pod template changes. Empty if no container fetches a model.
	//
	// +optional
	Fetcher *FetcherStatus `json:"fetcher,omitempty"`

	// model is what the container that fetches has said of spec.model in a pod, read once when a
	// rollout is complete. Empty if no pod says it credibly, and for oci:// and pvc://.
	//
	// +optional
	Model *ModelStatus `json:"model,omitempty"`

	// models are the same for spec.models. At most 8 items.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Models []NamedModelStatus `json:"models,omitempty"`
}

// ModelStatus is a model as it was fetched.
type ModelStatus struct {
	// uri is where it was fetched from.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URI string `json:"uri,omitempty"`

	// digest is the SHA-256 of the file or of the archive, as sha256: and 64 hexadecimal digits. For
	// several files it is that of the lines that sha256sum prints for them, sorted by name.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest,omitempty"`

	// bytes is the size of the file, of the archive, or of all files together.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	Bytes int64 `json:"bytes,omitempty"`
}

// NamedModelStatus is one of spec.models as it was fetched.
type NamedModelStatus struct {
	// name is the name of the model.
	//
	// +required
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`

	ModelStatus `json:",inline"`
}

// FetcherStatus is what the operator, and not the object, has decided of the init container
// that fetches a model.
type FetcherStatus struct {
	// templateHash is the hash of the pod template without the image and the mirrors.
	//
	// +required
	// +kubebuilder:validation:MaxLength=64
	TemplateHash string `json:"templateHash"`

	// revision is that of the Deployment whose pods were read last for status.model, and empty while
	// they are to be read again.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=20
	Revision string `json:"revision,omitempty"`

	// image is the image of the container.
	//
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`

	// mirrors replace the beginnings of URLs, as PREFIX=REPLACEMENT.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	Mirrors []string `json:"mirrors,omitempty"`
}

// ModelBox runs a model server as a Deployment, with a Service of the same name. It has
// presets of resources, default probes and a rolling update.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=mb,categories=mbo
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Size",type=string,priority=1,JSONPath=`.spec.resourceType`
// +kubebuilder:printcolumn:name="Updated",type=integer,priority=1,JSONPath=`.status.updatedReplicas`
// +kubebuilder:printcolumn:name="Service",type=string,priority=1,JSONPath=`.spec.serviceType`
// +kubebuilder:printcolumn:name="Address",type=string,priority=1,JSONPath=`.status.address`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || (self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))",optionalOldSelf=true,message="metadata.name must be a valid Service name: at most 63 characters, lower-case letters, digits and dashes, starting with a letter"
// +kubebuilder:validation:XValidation:rule=`!has(self.spec.route) || !has(self.spec.route.split) || self.spec.route.split.all(s, s.name != (has(self.spec.service) && has(self.spec.service.name) && self.spec.service.name != "" ? self.spec.service.name : self.metadata.name))`,message="may not name the Service of the object itself, which has what remains of 100 percent",fieldPath=".spec.route.split"
type ModelBox struct {
	metav1.TypeMeta `json:",inline"`

	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the ModelBox.
	//
	// +required
	Spec ModelBoxSpec `json:"spec"`

	// status is the most recently observed state of the ModelBox. It is read-only.
	//
	// +optional
	Status ModelBoxStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions of status.
func (o *ModelBox) GetConditions() []metav1.Condition { return o.Status.Conditions }

// GetStatus returns a pointer to status.
func (o *ModelBox) GetStatus() any { return &o.Status }

// ServiceName returns the name of the Service.
func (o *ModelBox) ServiceName() string { return o.Spec.ServiceName(o.Name) }

// ModelBoxList is a list of ModelBoxes.
//
// +kubebuilder:object:root=true
type ModelBoxList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ModelBox `json:"items"`
}
