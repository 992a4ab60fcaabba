// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// SetService sets the fields of a Service that spec.service has, which may be nil.
func SetService(options *modelv1.ServiceOptions, service *corev1.ServiceSpec) {
	if options == nil {
		return
	}
	service.LoadBalancerClass, service.TrafficDistribution = set(options.LoadBalancerClass), set(options.TrafficDistribution)
	service.LoadBalancerSourceRanges = options.LoadBalancerSourceRanges
	service.ExternalTrafficPolicy, service.InternalTrafficPolicy = options.ExternalTrafficPolicy, set(options.InternalTrafficPolicy)
	service.PublishNotReadyAddresses, service.SessionAffinity = options.PublishNotReadyAddresses, options.SessionAffinity
}

// set returns a pointer to a text, nil if it is not set.
func set[T ~string](text T) *T {
	if text == "" {
		return nil
	}
	return &text
}

// ValidateService returns the errors that the API server would return for the fields of a Service
// that spec.service and spec.serviceMetadata set. It runs the code of Kubernetes itself. Beside an
// unknown type, which is not its error, they are those of a NodePort, and none has the type in its
// text: to correct the type makes no error new.
func ValidateService(spec *field.Path, a *modelv1.Children, serviceType corev1.ServiceType) field.ErrorList {
	if a.Service == nil && a.ServiceMetadata == nil {
		return nil
	}
	path := spec.Child("service")
	if a.Service != nil && len(a.Service.LoadBalancerSourceRanges) > maxRanges {
		return field.ErrorList{field.TooMany(path.Child("loadBalancerSourceRanges"), len(a.Service.LoadBalancerSourceRanges), maxRanges)}
	}
	if serviceType != corev1.ServiceTypeClusterIP && serviceType != corev1.ServiceTypeLoadBalancer {
		serviceType = corev1.ServiceTypeNodePort
	}
	if errs := names(path.Child("name"), a.ServiceName(""), false, validation.IsDNS1035Label); len(errs) > 0 {
		return errs
	}
	service := &corev1.Service{Spec: corev1.ServiceSpec{Type: serviceType, Ports: []corev1.ServicePort{{Port: 80}}}}
	service.Annotations = Or(a.ServiceMetadata).Annotations
	SetService(a.Service, &service.Spec)
	corev1defaults.SetObjectDefaults_Service(service)
	internal := &core.Service{}
	if err := corev1defaults.Convert_v1_Service_To_core_Service(service, internal, nil); err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	var errs field.ErrorList
	for _, err := range corevalidation.ValidateServiceCreate(internal) {
		if own := ownPath(err.Field); own != "" {
			err.Field = own
			if strings.Contains(err.Detail, "may only be ") {
				err.Detail += "; change the type of the Service, or remove this field"
			}
			errs = append(errs, err)
		}
	}
	return errs
}

// ownPath returns the path in the object of a field of the Service, "" for a field that others set
// or validate.
func ownPath(path string) string {
	if rest, ok := strings.CutPrefix(path, "metadata.annotations["); ok {
		return "spec.serviceMetadata.annotations[" + rest
	}
	rest, _ := strings.CutPrefix(path, "spec.")
	rest = strings.Replace(rest, "LoadBalancerSourceRanges", "loadBalancerSourceRanges", 1) // As Kubernetes writes it.
	switch name, _, _ := strings.Cut(rest, "["); name {
	case "loadBalancerClass", "loadBalancerSourceRanges", "externalTrafficPolicy", "internalTrafficPolicy", "sessionAffinity", "trafficDistribution":
		return "spec.service." + rest
	}
	return ""
}

// ServiceNameChange returns the error of an update that changes spec.service.name.
func ServiceNameChange(spec *field.Path, now, was *modelv1.Children) field.ErrorList {
	if now.ServiceName("") == was.ServiceName("") {
		return nil
	}
	return field.ErrorList{field.Forbidden(spec.Child("service", "name"), "cannot be set, changed or removed after creation, because that of a Service cannot")}
}

// ClassChange returns the error of an update that sets, changes or removes the class of a load
// balancer, which the API server refuses. Both specs have ports, and are of type LoadBalancer.
func ClassChange(spec *field.Path, now, was *modelv1.ServiceOptions) field.ErrorList {
	if classOf(now) == classOf(was) {
		return nil
	}
	return field.ErrorList{field.Forbidden(spec.Child("service", "loadBalancerClass"), "cannot be set, changed or removed while serviceType is "+
		"LoadBalancer, because that of a Service cannot; set serviceType: ClusterIP without it, and then LoadBalancer again")}
}

func classOf(options *modelv1.ServiceOptions) string {
	if options == nil {
		return ""
	}
	return options.LoadBalancerClass
}
