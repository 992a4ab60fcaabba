// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The bounds of the fields of a rollout.
const (
	maxRevisions    = 1000 // As in the schema.
	defaultDeadline = 600  // Of a Deployment, in seconds (SetDefaults_Deployment in k8s.io/kubernetes/pkg/apis/apps/v1).
)

var onFailedRollout = []modelv1.OnFailedRollout{"", modelv1.OnFailedRolloutHold, modelv1.OnFailedRolloutReturn}

// ValidateRollout returns the errors of minReadySeconds, revisionHistoryLimit and onFailedRollout. deadline is
// spec.progressDeadlineSeconds, in which a Deployment requires that a pod can become available.
func ValidateRollout(spec *field.Path, a *modelv1.Children, deadline *int32) field.ErrorList {
	path, most := spec.Child("minReadySeconds"), ptr.Deref(deadline, defaultDeadline)
	errs := rules.Between(path, a.MinReadySeconds, 0, rules.MaxSeconds)
	if seconds := ptr.Deref(a.MinReadySeconds, 0); len(errs) == 0 && seconds > 0 && seconds >= most {
		errs = append(errs, field.Invalid(path, seconds, fmt.Sprintf("must be less than progressDeadlineSeconds, which is %d; set that to more", most)))
	}
	if !slices.Contains(onFailedRollout, a.OnFailedRollout) {
		errs = append(errs, field.NotSupported(spec.Child("onFailedRollout"), a.OnFailedRollout, onFailedRollout[1:]))
	}
	return append(errs, rules.Between(spec.Child("revisionHistoryLimit"), a.RevisionHistoryLimit, 0, maxRevisions)...)
}
