// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The maximum numbers of labels or of annotations, and of loadBalancerSourceRanges, which are those
// of the schema.
const maxKeys, maxRanges = 64, 64

// ownDomains are the prefixes of the keys that the operator, or the Deployment controller, sets
// itself. Another value would make them undo each other's writes.
var ownDomains = []string{"model.github.com", "modelbox-operator.github.io", "deployment.kubernetes.io"}

// ValidateMetadata returns the errors of the metadata of the children. own are the labels that the
// operator sets, and those by which it selects pods.
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

// keyErrors validates as many keys as there may be, in their order: to validate any more costs
// without a use. Those of taken, and of ownDomains, may not be set.
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
