// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The bounds of spec.autoscaling: items of metrics, and of the policies of each direction of behavior;
// characters and items of the fields of prometheus, and its cooldownSeconds. Kubernetes has those of behavior in
// seconds.
const (
	MaxMetrics                    = 16
	MaxScalingPolicies            = 16
	MaxStabilizationWindowSeconds = 3600
	MaxPeriodSeconds              = 1800
	MaxServerAddress              = 2048
	MaxQuery                      = 8192
	MaxCooldownSeconds            = 604800
	MaxAdditionalQueries          = 8
)

// Autoscaling is what an autoscaler scales an object by: by metrics, or by a query of Prometheus.
//
// +kubebuilder:validation:XValidation:rule="(has(self.minReplicas) ? self.minReplicas : 1) <= self.maxReplicas",message="must be less than or equal to maxReplicas",fieldPath=".minReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas > 0 || has(self.prometheus)",message="only KEDA scales to zero replicas; set prometheus as well, or at least 1",fieldPath=".minReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.prometheus) || !has(self.metrics) || self.metrics.size() == 0",message="may not be set together with prometheus; remove one of them",fieldPath=".metrics"
// +kubebuilder:validation:XValidation:rule="!has(self.prometheus) || !has(self.prometheus.cooldownSeconds) || has(self.prometheus.idleReplicas) || (has(self.minReplicas) && self.minReplicas == 0)",message="only with minReplicas 0 or idleReplicas does KEDA remove the last replica; set one of them as well, or remove cooldownSeconds",fieldPath=".prometheus.cooldownSeconds"
// +kubebuilder:validation:XValidation:rule="!has(self.prometheus) || !has(self.prometheus.idleReplicas) || !has(self.minReplicas) || self.minReplicas > 0",message="must be less than minReplicas, which is 0; remove idleReplicas, or set minReplicas to 1 or more",fieldPath=".prometheus.idleReplicas"
type Autoscaling struct {
	// minReplicas is the lower bound of replicas, 1 to 1073741823, or 0 with prometheus: then KEDA removes the last
	// replica when the results of all queries are 0. 1 if it is not set.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1073741823
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the upper bound of replicas, 1 to 1073741823.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1073741823
	MaxReplicas int32 `json:"maxReplicas"`

	// metrics are those of the HorizontalPodAutoscaler; the one that asks for most replicas decides. Without any, it is
	// 80% of the CPU that the pods request. At most 16 items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Metrics []autoscalingv2.MetricSpec `json:"metrics,omitempty"`

	// behavior is how fast the autoscaler scales up and down, as that of a HorizontalPodAutoscaler; KEDA hands it on to
	// the one that it makes. Without it, and for what it leaves out, Kubernetes has defaults: no wait before it scales
	// up, and 5 minutes before it scales down. Up to 16 policies in each direction. It is not about the last replica, which
	// prometheus.cooldownSeconds is about.
	//
	// +optional
	Behavior *autoscalingv2.HorizontalPodAutoscalerBehavior `json:"behavior,omitempty"`

	// prometheus is a query by which KEDA scales, which the cluster must have. The permission to create
	// scaledobjects.keda.sh is needed to set it.
	//
	// +optional
	Prometheus *PrometheusQuery `json:"prometheus,omitempty"`
}

// PrometheusQuery is a query of Prometheus, and how much of its result one replica answers for.
type PrometheusQuery struct {
	// serverAddress is the URL of Prometheus, such as http://prometheus-operated.monitoring.svc:9090: http:// or https://, at
	// most 2048 characters.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^/\s]+\S*$`
	ServerAddress string `json:"serverAddress"`

	// query is a query in PromQL whose result is one number, such as the sum of the requests in all replicas. 1 to 8192
	// characters.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Query string `json:"query"`

	// target is the part of the result that one replica answers for: the number of replicas is the result divided by
	// it, rounded up. Must be greater than 0.
	//
	// +required
	Target resource.Quantity `json:"target"`

	// cooldownSeconds is after how many seconds without load KEDA removes the last replica: 0 to 604800, a week. KEDA's
	// default is 300. Only with minReplicas 0 or idleReplicas.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	CooldownSeconds *int32 `json:"cooldownSeconds,omitempty"`

	// idleReplicas is the number of replicas while the results of all queries are 0. With any other result there are
	// minReplicas at least, which must be 1 or more. It can only be 0. Without it, minReplicas stay.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=0
	IdleReplicas *int32 `json:"idleReplicas,omitempty"`

	// additionalQueries are further queries. The one that asks for most replicas decides. At most 8 items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	AdditionalQueries []AdditionalQuery `json:"additionalQueries,omitempty"`
}

// AdditionalQuery is a further query of Prometheus, and how much of its result one replica answers for.
type AdditionalQuery struct {
	// serverAddress is the URL of Prometheus, as that of the first query, which is its default. At most 2048 characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?://[^/\s]+\S*)?$`
	ServerAddress string `json:"serverAddress,omitempty"`

	// query is a query in PromQL whose result is one number. 1 to 8192 characters.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	Query string `json:"query"`

	// target is the part of the result that one replica answers for, as that of the first query. Must be greater than 0.
	//
	// +required
	Target resource.Quantity `json:"target"`
}
