// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"cmp"
	"fmt"

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
