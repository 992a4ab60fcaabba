// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/utils/ptr"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The maximum numbers of labels or of annotations, and of loadBalancerSourceRanges, which are those of the schema.
const maxKeys, maxRanges = 64, 64

// ownDomains are the prefixes of the keys that the operator, or the Deployment controller, sets itself. Another
// value would make them undo each other's writes.
var ownDomains = []string{"model.github.com", "modelbox-operator.github.io", "deployment.kubernetes.io"}

// ValidateMetadata returns the errors of the metadata of the children. own are the labels that the operator sets,
// and those by which it selects pods.
func ValidateMetadata(spec *field.Path, a *modelv1.Children, own labels.Set) field.ErrorList {
	var errs field.ErrorList
	for _, of := range [...]struct {
		name string
		*modelv1.Metadata
	}{{"podMetadata", a.PodMetadata}, {"deploymentMetadata", a.DeploymentMetadata}, {"serviceMetadata", a.ServiceMetadata}} {
		if of.Metadata == nil {
			continue
		}
		errs = append(errs, keyErrors(spec.Child(of.name, "labels"), of.Labels, own,
			"the operator sets this label, or selects pods by it", func(path *field.Path, key string) field.ErrorList {
				return metav1validation.ValidateLabels(map[string]string{key: of.Labels[key]}, path)
			})...)
		path := spec.Child(of.name, "annotations")
		errs = append(errs, keyErrors(path, of.Annotations, labels.Set{api.AnnotationRestartedAt: ""},
			"the operator or Kubernetes sets this annotation", func(path *field.Path, key string) field.ErrorList {
				return apivalidation.ValidateAnnotations(map[string]string{key: ""}, path)
			})...)
		if err := apivalidation.ValidateAnnotationsSize(of.Annotations); err != nil {
			errs = append(errs, field.TooLong(path, "", apivalidation.TotalAnnotationSizeLimitB))
		}
	}
	return errs
}

// keyErrors validates as many keys as there may be, in their order: to validate any more costs without a use. Those of
// taken, and of ownDomains, may not be set.
func keyErrors(path *field.Path, written map[string]string, taken labels.Set, why string, validate func(*field.Path, string) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	keys := slices.Sorted(maps.Keys(written))
	if len(keys) > maxKeys {
		errs = append(errs, field.TooMany(path, len(keys), maxKeys))
	}
	for _, key := range keys[:min(len(keys), maxKeys)] {
		if taken.Has(key) || isOwn(key) {
			errs = append(errs, rules.MarkUnbuildable(field.Forbidden(path.Key(key), "may not be set, because "+why+"; remove it"))...)
			continue
		}
		errs = append(errs, validate(path.Key(key), key)...)
	}
	return errs
}

// isOwn reports whether a key has one of ownDomains as its prefix, or a domain below one.
func isOwn(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	return prefixed && slices.ContainsFunc(ownDomains, func(own string) bool { return domain == own || strings.HasSuffix(domain, "."+own) })
}

// Or returns metadata, empty if there is none.
func Or(m *modelv1.Metadata) *modelv1.Metadata { return cmp.Or(m, &modelv1.Metadata{}) }

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

// ValidateService returns the errors that the API server would return for the fields of a Service that
// spec.service and spec.serviceMetadata set. It runs the code of Kubernetes itself. Beside an unknown type, which is not
// its error, they are those of a NodePort, and none has the type in its text: to correct the type makes no error new.
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
	service := &corev1.Service{Spec: corev1.ServiceSpec{Type: serviceType, Ports: []corev1.ServicePort{{Port: 80}}}}
	service.Annotations = Or(a.ServiceMetadata).Annotations
	SetService(a.Service, &service.Spec)
	corev1defaults.SetObjectDefaults_Service(service)
	internal := &core.Service{}
	if err := corev1defaults.Convert_v1_Service_To_core_Service(service, internal, nil); err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	var errs field.ErrorList
	for _, err := range validation.ValidateServiceCreate(internal) {
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

// ownPath returns the path in the object of a field of the Service, "" for a field that others set or validate.
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

// ClassChange returns the error of an update that sets, changes or removes the class of a load balancer, which
// the API server refuses. Both specs have ports, and are of type LoadBalancer.
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

// The bounds of the fields of a rollout.
const (
	maxRevisions    = 1000 // As in the schema.
	defaultDeadline = 600  // Of a Deployment, in seconds (SetDefaults_Deployment in k8s.io/kubernetes/pkg/apis/apps/v1).
)

// ValidateRollout returns the errors of minReadySeconds and revisionHistoryLimit. deadline is
// spec.progressDeadlineSeconds, in which a Deployment requires that a pod can become available.
func ValidateRollout(spec *field.Path, a *modelv1.Children, deadline *int32) field.ErrorList {
	path, most := spec.Child("minReadySeconds"), ptr.Deref(deadline, defaultDeadline)
	errs := rules.Between(path, a.MinReadySeconds, 0, rules.MaxSeconds)
	if seconds := ptr.Deref(a.MinReadySeconds, 0); len(errs) == 0 && seconds > 0 && seconds >= most {
		errs = append(errs, field.Invalid(path, seconds, fmt.Sprintf("must be less than progressDeadlineSeconds, which is %d; set that to more", most)))
	}
	return append(errs, rules.Between(spec.Child("revisionHistoryLimit"), a.RevisionHistoryLimit, 0, maxRevisions)...)
}
