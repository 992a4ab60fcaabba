// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import "k8s.io/apimachinery/pkg/util/intstr"

// Children is what a ModelBox and an App define of their children beside the pods: optional
// children, labels, and fields of the Deployment and the Service. Each part is off unless it is
// set.
type Children struct {
	// podMetadata are labels and annotations of the pods, such as the label kueue.x-k8s.io/queue-name. A key
	// may be set here or in podTemplate.metadata, but not in both. A change replaces the pods.
	//
	// +optional
	PodMetadata *Metadata `json:"podMetadata,omitempty"`

	// deploymentMetadata are labels and annotations of the Deployment. A change replaces no pods.
	//
	// +optional
	DeploymentMetadata *Metadata `json:"deploymentMetadata,omitempty"`

	// serviceMetadata are labels and annotations of the Service, such as those that a controller of load
	// balancers reads. It has no effect without ports.
	//
	// +optional
	ServiceMetadata *Metadata `json:"serviceMetadata,omitempty"`

	// minReadySeconds is the time in seconds that a new pod must have been ready, without a crash, to count as
	// available in a rollout, 0 to 86400. Must be less than progressDeadlineSeconds. Defaults to 3 for a
	// ModelBox, and to 0 for an App.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`

	// revisionHistoryLimit is the number of old ReplicaSets that are kept, to which "kubectl rollout undo" can
	// return, 0 to 1000. Kubernetes defaults it to 10.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// onFailedRollout defines what becomes of a rollout that fails, because it exceeds
	// progressDeadlineSeconds, or because no pod of it can start for a reason of the spec itself: Hold leaves it
	// as it is, Return makes the children once what they were made of in the last complete rollout, with
	// the present replicas, schedules, autoscaling and route. The spec stays as it is; its next change is rolled out
	// again. Defaults to Hold.
	//
	// +optional
	OnFailedRollout OnFailedRollout `json:"onFailedRollout,omitempty"`

	// service are further fields of the Service. It has no effect without ports.
	//
	// +optional
	Service *ServiceOptions `json:"service,omitempty"`

	// disruption bounds how many pods a drain of nodes may evict at the same time, by a PodDisruptionBudget of
	// the name of the object. An object of one replica has none, because that would block each drain. No default.
	//
	// +optional
	Disruption *Disruption `json:"disruption,omitempty"`

	// autoscaling sets replicas by the load: by a HorizontalPodAutoscaler of the name of the object, or with prometheus
	// by a ScaledObject of KEDA. Their target is the scale subresource of the object. schedules may not be set
	// as well, and replicas should not: a manifest that has it undoes what the autoscaler did. No default.
	//
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// route lets requests from outside of the cluster reach the first port, by an HTTPRoute of the Gateway API of the name
	// of the object. The cluster has to have the Gateway API. The permission to create httproutes.gateway.networking.k8s.io
	// is needed to set it. No default.
	//
	// +optional
	Route *Route `json:"route,omitempty"`

	// monitoring lets Prometheus scrape the pods, by a PodMonitor of the Prometheus Operator of the name of the object. The
	// cluster has to have the Prometheus Operator. The permission to create podmonitors.monitoring.coreos.com is needed to
	// set it. No default.
	//
	// +optional
	Monitoring *Monitoring `json:"monitoring,omitempty"`
}

// Disruption has exactly one of its fields.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.maxUnavailable) && self.maxUnavailable != "") != (has(self.minAvailable) && self.minAvailable != "")`,message="must have exactly one of maxUnavailable and minAvailable"
type Disruption struct {
	// maxUnavailable is the maximum number of pods that may be unavailable because of evictions: a number of pods
	// from 1 to 1073741823, or a percentage of replicas from 1% to 100%, which is rounded up.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?%|100%|[1-9][0-9]{0,8})?$`
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// minAvailable is the minimum number of pods that stay available in spite of evictions: a number of pods
	// from 1 to 1073741823, or a percentage of replicas from 1% to 100%, which is rounded up. It is at most all
	// replicas but one, so that a drain can always evict one.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]?%|100%|[1-9][0-9]{0,8})?$`
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
}
