// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
)

// The upper bounds of the numbers, which are those of the schema; the lower bounds
// are 0.
const (
	MaxStartingDeadlineSeconds = int64(366 * 24 * 60 * 60)
	MaxJitterSeconds           = int32(24 * 60 * 60)
	MaxHistoryLimit            = int32(100)
)

// The paths that several functions need.
var (
	spec               = field.NewPath("spec")
	deploymentNamePath = spec.Child("deploymentName")
	deprecatedNamePath = spec.Child("deploymentname")
	schedulePath       = spec.Child("schedule")
	deadlinePath       = spec.Child("startingDeadlineSeconds")
)

// Validate returns the errors of an Eru that has its defaults, in the order of the
// fields. It does not change the object.
func Validate(obj *mtsrev1.Eru) field.ErrorList {
	errs := rules.ObjectName(&obj.ObjectMeta)
	errs = append(errs, deploymentName(obj)...)
	errs = append(errs, rules.Schedule(schedulePath, obj.Spec.Schedule)...)
	errs = append(errs, rules.TimeZone(spec.Child("timeZone"), obj.Spec.TimeZone)...)
	errs = append(errs, rules.Between(deadlinePath, obj.Spec.StartingDeadlineSeconds, 0, MaxStartingDeadlineSeconds)...)
	errs = append(errs, rules.Between(spec.Child("jitterSeconds"), &obj.Spec.JitterSeconds, 0, MaxJitterSeconds)...)
	errs = append(errs, rules.Between(spec.Child("historyLimit"), obj.Spec.HistoryLimit, 0, MaxHistoryLimit)...)
	return append(errs, windows.Validate(spec, obj.Spec.Windows)...)
}

// deploymentName validates the name of the Deployment, and its deprecated alias, which must be
// the same. A name that is the name of the object is validated as such, and one that is that of
// the alias has its error there. It is empty if the API server is going to generate it.
func deploymentName(obj *mtsrev1.Eru) field.ErrorList {
	name, alias := obj.Spec.DeploymentName, obj.Spec.DeprecatedDeploymentName
	var errs field.ErrorList
	if name != obj.Name && name != alias {
		errs = rules.ObjectOf("Deployment", deploymentNamePath, name)
	}
	if alias == "" || alias == obj.Name && alias == name {
		return errs
	}
	errs = append(errs, rules.ObjectOf("Deployment", deprecatedNamePath, alias)...)
	if name != "" && name != alias {
		errs = append(errs, field.Invalid(deprecatedNamePath, alias,
			"must be the same as deploymentName; remove deploymentname, which is deprecated, and set deploymentName"))
	}
	return errs
}

const (
	// announcedRuns is the number of restarts in a warning.
	announcedRuns = 3

	// shortDeadline is about twice the time in seconds that it takes another replica of
	// the controller to become the leader.
	shortDeadline = 10
)

// Warn returns the next restarts of an Eru that has its defaults, in its own time zone,
// and warnings on what in it is deprecated or likely to be a mistake. Each has at most 120
// characters, for time zones with an offset of whole or half hours. An object with an invalid
// schedule gets no warning about its restarts.
func Warn(obj *mtsrev1.Eru, now time.Time) []string {
	var out []string
	if obj.Spec.DeprecatedDeploymentName != "" {
		out = append(out, fmt.Sprintf("%s: deprecated; use %s instead", deprecatedNamePath, deploymentNamePath))
	}
	return append(out, warnOfRestarts(obj, now)...)
}

func warnOfRestarts(obj *mtsrev1.Eru, now time.Time) []string {
	runs := nextRuns(obj, now)
	if runs == "" {
		return nil
	}
	if !obj.Spec.Enabled {
		return []string{fmt.Sprintf("%s is false: it would run at %s", spec.Child("enabled"), runs)}
	}
	out := []string{fmt.Sprintf("%s: the next restarts are at %s", schedulePath, runs)}
	if deadline := obj.Spec.StartingDeadlineSeconds; deadline != nil && *deadline < shortDeadline {
		out = append(out, fmt.Sprintf("%s: less than %d s, so a change of the controller's leader can miss a restart", deadlinePath, shortDeadline))
	}
	return out
}

// nextRuns returns the scheduled times of the next restarts after an instant, "" if the schedule,
// the time zone or a window is invalid.
func nextRuns(obj *mtsrev1.Eru, after time.Time) string {
	plan, err := NewPlan(obj)
	if err != nil {
		return ""
	}
	var runs []string
	for _, run := range plan.Restarts(after, announcedRuns) {
		runs = append(runs, run.Format(time.RFC3339))
	}
	if len(runs) == 0 {
		return "no time: none of the next ones, jitter included, is within spec.windows"
	}
	return strings.Join(runs, ", ")
}
