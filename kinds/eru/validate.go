// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/cron"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The upper bounds of the numbers, which are those of the schema; the lower bounds
// are 0.
const (
	MaxStartingDeadlineSeconds = int64(366 * 24 * 60 * 60)
	MaxJitterSeconds           = int32(24 * 60 * 60)
	MaxHistoryLimit            = int32(100)
)

// maxTimeZone is the schema's bound, in bytes. No name in the database is half as long; the
// bound limits the size of the error.
const maxTimeZone = 255

// The paths are package variables, because they allocate and valid objects do not need them.
var (
	spec               = field.NewPath("spec")
	deploymentNamePath = spec.Child("deploymentName")
	deprecatedNamePath = spec.Child("deploymentname")
	enabledPath        = spec.Child("enabled")
	schedulePath       = spec.Child("schedule")
	timeZonePath       = spec.Child("timeZone")
	deadlinePath       = spec.Child("startingDeadlineSeconds")
	jitterPath         = spec.Child("jitterSeconds")
	historyLimitPath   = spec.Child("historyLimit")
)

// Validate returns the errors of an Eru that has its defaults, in the order of the
// fields. It does not change the object.
func Validate(obj *mtsrev1.Eru) field.ErrorList {
	errs := rules.ObjectName(&obj.ObjectMeta)
	errs = append(errs, deploymentName(obj)...)
	errs = append(errs, Schedule(schedulePath, obj.Spec.Schedule)...)
	errs = append(errs, TimeZone(timeZonePath, obj.Spec.TimeZone)...)
	errs = append(errs, between(deadlinePath, obj.Spec.StartingDeadlineSeconds, MaxStartingDeadlineSeconds)...)
	errs = append(errs, between(jitterPath, &obj.Spec.JitterSeconds, MaxJitterSeconds)...)
	return append(errs, between(historyLimitPath, obj.Spec.HistoryLimit, MaxHistoryLimit)...)
}

// deploymentName validates the name of the Deployment, and its deprecated alias, which must be
// the same. A name that is the name of the object is validated as such, and one that is that of
// the alias has its error there. It is empty if the API server is going to generate it.
func deploymentName(obj *mtsrev1.Eru) field.ErrorList {
	name, alias := obj.Spec.DeploymentName, obj.Spec.DeprecatedDeploymentName
	var errs field.ErrorList
	if name != obj.Name && name != alias {
		errs = targetName(deploymentNamePath, name)
	}
	if alias == "" || alias == obj.Name && alias == name {
		return errs
	}
	errs = append(errs, targetName(deprecatedNamePath, alias)...)
	if name != "" && name != alias {
		errs = append(errs, field.Invalid(deprecatedNamePath, alias,
			"must be the same as deploymentName; remove deploymentname, which is deprecated, and set deploymentName"))
	}
	return errs
}

// targetName refuses what cannot be the name of a Deployment.
func targetName(path *field.Path, name string) field.ErrorList {
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, "must be the name of a Deployment, which is a DNS-1123 subdomain: "+
		"1 to 253 lower-case letters, digits, dashes and dots, starting and ending with a letter or digit")}
}

// Schedule refuses an expression that is not a cron schedule or never has a scheduled
// time.
func Schedule(path *field.Path, expression string) field.ErrorList {
	if len(expression) > cron.MaxLength {
		return field.ErrorList{field.TooLong(path, expression, cron.MaxLength)}
	}
	if _, err := cron.Parse(expression); err != nil {
		return field.ErrorList{field.Invalid(path, expression, err.Error())}
	}
	return nil
}

// TimeZone refuses a name that is not the IANA name of a time zone.
func TimeZone(path *field.Path, name string) field.ErrorList {
	if len(name) > maxTimeZone {
		return field.ErrorList{field.TooLong(path, name, maxTimeZone)}
	}
	if _, err := cron.LoadLocation(name); err != nil {
		return field.ErrorList{field.Invalid(path, name, err.Error())}
	}
	return nil
}

// between refuses a number that is not between 0 and most. Nil is valid, because it has a
// default.
func between[T cmp.Ordered](path *field.Path, value *T, most T) field.ErrorList {
	if value == nil || *value >= *new(T) && *value <= most {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *value, fmt.Sprintf("must be between %v and %v, inclusive", *new(T), most))}
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
	runs := nextRuns(&obj.Spec, now)
	if runs == "" {
		return nil
	}
	if !obj.Spec.Enabled {
		return []string{fmt.Sprintf("%s is false: it would run at %s", enabledPath, runs)}
	}
	out := []string{fmt.Sprintf("%s: the next restarts are at %s", schedulePath, runs)}
	if deadline := obj.Spec.StartingDeadlineSeconds; deadline != nil && *deadline < shortDeadline {
		out = append(out, fmt.Sprintf("%s: less than %d s, so a change of the controller's leader can miss a restart", deadlinePath, shortDeadline))
	}
	return out
}

// nextRuns returns the next scheduled times after an instant, "" if the schedule or the
// time zone is invalid.
func nextRuns(spec *mtsrev1.EruSpec, after time.Time) string {
	schedule, err := cron.Parse(spec.Schedule)
	zone, zoneErr := cron.LoadLocation(spec.TimeZone)
	if err != nil || zoneErr != nil {
		return ""
	}
	var runs []string
	for run, ok := schedule.Next(after, zone); ok && len(runs) < announcedRuns; run, ok = schedule.Next(run, zone) {
		runs = append(runs, run.Format(time.RFC3339))
	}
	return strings.Join(runs, ", ")
}
