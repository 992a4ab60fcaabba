// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// ownFields returns a merged template with the fields that the operator must own, and no
// others.
//
// The API server fills in serviceAccount, the deprecated alias of serviceAccountName, and
// copies it back where serviceAccountName is missing. So the operator owns both: otherwise a
// service account would stay in the child after podTemplate does not name it any more.
//
// The annotation kubectl.kubernetes.io/restartedAt belongs to the field manager that
// restarts. A podTemplate that was copied from a running object contains the time of an old
// restart, and an apply of it would start another rollout.
func ownFields(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	template.Spec.DeprecatedServiceAccount = template.Spec.ServiceAccountName
	delete(template.Annotations, rules.AnnotationRestartedAt)
	if len(template.Annotations) == 0 {
		template.Annotations = nil
	}
	return template
}
