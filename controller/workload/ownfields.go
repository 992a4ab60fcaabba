// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/modelbox-operator/modelbox-operator/api"
)

// ownFields leaves in a merged template what the operator should own, and no less.
//
// The API server fills in serviceAccount, the deprecated alias of serviceAccountName, and
// copies it back where serviceAccountName is missing. So the operator has to own both, or
// a service account that podTemplate names no more would stay.
//
// A restart belongs to the one who restarts. A podTemplate that was copied from a
// running object has the time of an old one, which would take a new one back.
func ownFields(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	template.Spec.DeprecatedServiceAccount = template.Spec.ServiceAccountName
	delete(template.Annotations, api.AnnotationRestartedAt)
	if len(template.Annotations) == 0 {
		template.Annotations = nil
	}
	return template
}
