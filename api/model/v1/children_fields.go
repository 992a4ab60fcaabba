// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import corev1 "k8s.io/api/core/v1"

// Metadata are labels and annotations of a child. Those that the operator sets, and the labels by which it
// selects pods, cannot be among them. Those that other clients set stay.
type Metadata struct {
	// labels are added to those of the operator. At most 64 labels.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to those of the operator. At most 64 annotations, and at most 256 KiB.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ServiceOptions are fields of a Service that a ModelBox and an App have no other field for.
type ServiceOptions struct {
	// name is the name of the Service, instead of that of the object: it is the name of an existing Service, and only
	// "modelbox adopt" sets it. It cannot be set, changed or removed later. At most 63 characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z]([-a-z0-9]*[a-z0-9])?)?$`
	Name string `json:"name,omitempty"`

	// loadBalancerClass is the name of the implementation of the load balancer, such as
	// service.k8s.aws/nlb, instead of the default one of the cluster. May be set only if the type of
	// the Service is LoadBalancer, and cannot be set, changed or removed while it is. At most 317 characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=317
	LoadBalancerClass string `json:"loadBalancerClass,omitempty"`

	// loadBalancerSourceRanges are the addresses of the clients that the load balancer admits, as
	// 10.0.0.0/8, if its implementation supports this. May be set only if the type of the Service is
	// LoadBalancer. At most 64 items.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`

	// externalTrafficPolicy defines which pods receive the traffic from outside of the cluster: Cluster
	// (all pods), or Local (those on the node that receives it, which see the address of the client). May
	// be set only if the type of the Service is NodePort or LoadBalancer. Kubernetes defaults it to Cluster.
	//
	// +optional
	// +kubebuilder:validation:Enum="";Cluster;Local
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`

	// internalTrafficPolicy defines which pods receive the traffic from within the cluster: Cluster (all
	// pods), or Local (those on the node of the client). Kubernetes defaults it to Cluster.
	//
	// +optional
	// +kubebuilder:validation:Enum="";Cluster;Local
	InternalTrafficPolicy corev1.ServiceInternalTrafficPolicy `json:"internalTrafficPolicy,omitempty"`

	// publishNotReadyAddresses defines whether pods that are not ready receive traffic. Defaults to false.
	//
	// +optional
	PublishNotReadyAddresses bool `json:"publishNotReadyAddresses,omitempty"`

	// sessionAffinity defines whether the requests of one client address go to the same pod: ClientIP (for
	// three hours) or None. Kubernetes defaults it to None.
	//
	// +optional
	// +kubebuilder:validation:Enum="";ClientIP;None
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// trafficDistribution defines which pods are preferred: PreferSameZone, PreferSameNode, or PreferClose,
	// the older name of PreferSameZone. If it is not set, none is.
	//
	// +optional
	// +kubebuilder:validation:Enum="";PreferClose;PreferSameZone;PreferSameNode
	TrafficDistribution string `json:"trafficDistribution,omitempty"`
}
