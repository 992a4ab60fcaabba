// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Bounds of spec.route and spec.monitoring. Those of hosts and path are those of the Gateway API.
const (
	MaxHosts = 16
	MaxPath  = 1024
	MaxSplit = 4
)

// Route is how requests from outside of the cluster reach the first port of an object.
type Route struct {
	// hosts are the host names of the requests, such as chat.example.com, or *.example.com for all names below
	// example.com. 1 to 16 items of at most 253 characters.
	//
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Hosts []Host `json:"hosts"`

	// path is the prefix of the paths of the requests, by whole segments: /v1 is also that of /v1/models, and not of
	// /v10. It stays in the request. At most 1024 characters. / if it is not set.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^(/([-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*)?$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('//|/[.][.]?(/|$)|%2[fF]')",message="must not contain an empty segment, a segment . or .., or %2F"
	Path string `json:"path,omitempty"`

	// gateway is the Gateway that the requests come through.
	//
	// +required
	Gateway GatewayReference `json:"gateway"`

	// tls is whether the Gateway terminates TLS for these hosts: status.url then begins with https:// instead of http://.
	// The certificate, and a redirect of http://, are those of the Gateway. Defaults to false.
	//
	// +optional
	TLS bool `json:"tls,omitempty"`

	// split sends shares of the requests to other Services of the namespace, such as that of a ModelBox with the next
	// version of a model. The Service of the object has what remains of 100 percent; if nothing remains, it has none. At
	// most 4 items, whose names differ from each other and from that of the object. None if it is not set.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.map(s, s.weight).sum() <= 100",message="the weights must be at most 100 together"
	Split []RouteShare `json:"split,omitempty"`
}

// RouteShare is a share of the requests of a route.
type RouteShare struct {
	// name is the name of the Service, which has to serve the number of the first port of the object. It need not exist
	// yet, but then its share of the requests fails, and the message of Ready says so. 1 to 63 characters.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`

	// weight is the share in percent, 1 to 100.
	//
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`
}

// Host is a host name of requests, of which the first label may be *.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
type Host string

// GatewayReference names a Gateway of the Gateway API.
type GatewayReference struct {
	// name is the name of the Gateway. At most 253 characters.
	//
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// namespace is the namespace of the Gateway, whose listeners have to allow routes from that of the object. That of
	// the object if it is not set. At most 63 characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Namespace string `json:"namespace,omitempty"`

	// listener is the name of one of its listeners, such as https. If it is not set, all those that allow the route and
	// its hosts. At most 253 characters.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$`
	Listener string `json:"listener,omitempty"`
}
