// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// AppName is the value of app.kubernetes.io/name on a Genericdaemon's children.
const AppName = "genericdaemon"

var (
	spec      = field.NewPath("spec")
	labelPath = spec.Child("label")
)

// reserved are the fields of the main container that have a field of their own in a
// Genericdaemon.
var reserved = append(slices.Clone(workload.ReservedOfAll), workload.Reserved{Field: "envFrom", Instead: "spec.envFrom", Either: true})

// Validate returns the errors of a Genericdaemon that has its defaults, in the order of
// the fields. It does not change the object.
func Validate(daemon *mydomainv1beta1.Genericdaemon) field.ErrorList {
	errs := rules.ObjectName(&daemon.ObjectMeta)
	errs = append(errs, label(daemon.Spec.Label)...)
	errs = append(errs, rules.Image(spec.Child("image"), daemon.Spec.Image)...)
	errs = append(errs, rules.Rollout(spec.Child("rollingUpdate"), daemon.Spec.RollingUpdate)...)
	errs = append(errs, rules.Between(spec.Child("terminationGracePeriodSeconds"), daemon.Spec.TerminationGracePeriodSeconds, 0, rules.MaxSeconds)...)
	errs = append(errs, windows.ValidateOnChange(spec, daemon.Spec.Windows, daemon.Spec.RestartOnChange, daemon.Spec.HoldChanges)...)
	return Pods(daemon).Validate(errs)
}

// label validates a node label: "", "key" or "key=value".
func label(label string) field.ErrorList {
	if label == "" {
		return nil
	}
	key, value, _ := strings.Cut(label, "=")
	var errs field.ErrorList
	for _, problem := range validation.IsQualifiedName(key) {
		errs = append(errs, field.Invalid(labelPath, label, "invalid label key: "+problem))
	}
	for _, problem := range validation.IsValidLabelValue(value) {
		errs = append(errs, field.Invalid(labelPath, label, "invalid label value: "+problem+
			"; use key for any value, or key=value for one value"))
	}
	return errs
}

// Warn returns warnings on what in a valid Genericdaemon is likely to be a mistake.
func Warn(daemon *mydomainv1beta1.Genericdaemon) []string {
	w := Workload(daemon)
	out := append(w.Hints(), w.Warnings()...)
	if daemon.Spec.Label == "" {
		out = append(out, labelPath.String()+": empty, so the daemon runs on every node")
	}
	return out
}
