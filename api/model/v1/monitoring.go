// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import "k8s.io/apimachinery/pkg/util/intstr"

// Monitoring is where Prometheus finds the metrics of the pods. All fields may be left out: monitoring: {}.
type Monitoring struct {
	// port is the container port that serves the metrics: its number, 1 to 65535, or its name. A container has to list it
	// under ports. If it is not set, the target port of the first port of the object.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^(([a-z0-9]+-)*[0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*)?$`
	Port *intstr.IntOrString `json:"port,omitempty"`

	// path is the path of the metrics. At most 1024 characters. /metrics if it is not set.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^(/([-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*)?$`
	Path string `json:"path,omitempty"`

	// interval is the time between two scrapes, from 1s to 24h in hours, minutes and seconds, such as 30s or 1m30s. If it
	// is not set, that of the Prometheus.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]{1,5}h)?([0-9]{1,5}m)?([0-9]{1,5}s)?$`
	// +kubebuilder:validation:XValidation:rule="self == '' || duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a time from 1s to 24h, such as 30s"
	Interval string `json:"interval,omitempty"`
}
