// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package around

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

// maxKeys is the maximum number of labels, and of annotations, which is that of the schema.
const maxKeys = 64

// ownDomains are the prefixes of the keys that the operator, or the Deployment controller, sets itself. Another
// value would make them undo each other's writes.
var ownDomains = []string{"model.github.com", "modelbox-operator.github.io", "deployment.kubernetes.io"}

// ValidateMetadata returns the errors of the metadata of the children. own are the labels that the operator sets,
// and those by which it selects pods.
func ValidateMetadata(spec *field.Path, a *modelv1.Around, own labels.Set) field.ErrorList {
	var errs field.ErrorList
	for _, of := range [...]struct {
		name string
		*modelv1.Metadata
	}{{"podMetadata", a.PodMetadata}, {"deploymentMetadata", a.DeploymentMetadata}, {"serviceMetadata", a.ServiceMetadata}} {
		if of.Metadata != nil {
			errs = append(errs, labelErrors(spec.Child(of.name, "labels"), of.Labels, own)...)
			errs = append(errs, annotationErrors(spec.Child(of.name, "annotations"), of.Annotations)...)
		}
	}
	return errs
}

func labelErrors(path *field.Path, written, own map[string]string) field.ErrorList {
	errs := tooMany(path, written)
	for _, key := range firstKeys(written) {
		if _, taken := own[key]; taken || isOwn(key) {
			errs = append(errs, rules.MarkUnbuildable(field.Forbidden(path.Key(key), "may not be set, because the operator sets this label, or selects pods by it; remove it"))...)
			continue
		}
		errs = append(errs, metav1validation.ValidateLabels(map[string]string{key: written[key]}, path.Key(key))...)
	}
	return errs
}

func annotationErrors(path *field.Path, written map[string]string) field.ErrorList {
	errs := tooMany(path, written)
	for _, key := range firstKeys(written) {
		if isOwn(key) || key == api.AnnotationRestartedAt {
			errs = append(errs, rules.MarkUnbuildable(field.Forbidden(path.Key(key), "may not be set, because the operator or Kubernetes sets this annotation; remove it"))...)
			continue
		}
		errs = append(errs, apivalidation.ValidateAnnotations(map[string]string{key: ""}, path.Key(key))...)
	}
	if err := apivalidation.ValidateAnnotationsSize(written); err != nil {
		errs = append(errs, field.TooLong(path, "", apivalidation.TotalAnnotationSizeLimitB))
	}
	return errs
}

func tooMany(path *field.Path, written map[string]string) field.ErrorList {
	if len(written) <= maxKeys {
		return nil
	}
	return field.ErrorList{field.TooMany(path, len(written), maxKeys)}
}

// firstKeys returns as many keys as there may be, in their order: to validate any more costs without a use.
func firstKeys(written map[string]string) []string {
	keys := slices.Sorted(maps.Keys(written))
	return keys[:min(len(keys), maxKeys)]
}

// isOwn reports whether a key has one of ownDomains as its prefix, or a domain below one.
func isOwn(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	return prefixed && slices.ContainsFunc(ownDomains, func(own string) bool { return domain == own || strings.HasSuffix(domain, "."+own) })
}

// Or returns metadata, empty if there is none.
func Or(m *modelv1.Metadata) *modelv1.Metadata { return cmp.Or(m, &modelv1.Metadata{}) }
