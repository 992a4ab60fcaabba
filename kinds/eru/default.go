// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eru holds the defaults and the validation of Erus. All functions are pure: the time
// is an argument. Admission runs them, and the controller runs them again in memory before it
// reconciles, so that an object which was stored without admission is handled in the same way.
package eru

import (
	"cmp"
	"time"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/cron"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
)

// derived are the fields that have derived values.
var derived = kinds.NewFields("deploymentName")

// Kind returns the defaults and the rules of Erus, which both processes run.
func Kind() kinds.Kind[mtsrev1.Eru] {
	return kinds.Kind[mtsrev1.Eru]{
		GVK:     mtsrev1.SchemeGroupVersion.WithKind("Eru"),
		Default: Default,
		Codec:   func(_, _ *mtsrev1.Eru) kinds.Codec[mtsrev1.Eru] { return others },
		Update: &kinds.Update[mtsrev1.Eru]{
			Derived:  func(_, _ *mtsrev1.Eru) kinds.Fields { return derived },
			Possible: func(name *kinds.Leaf, _, stored *mtsrev1.Eru) bool { return name.Value == derivedName(stored) },
		},
		Validate: Validate,
		Warn:     func(obj, _ *mtsrev1.Eru, now time.Time) []string { return Warn(obj, now) },
	}
}

// The defaults. The schema has them as well, except for that of deploymentName.
const (
	DefaultSchedule                = "0 0 * * *"
	DefaultStartingDeadlineSeconds = int64(600)
	DefaultHistoryLimit            = int32(10)
)

// Default sets the defaults of obj.
//
// deploymentName is derived from its deprecated alias and the name of the object. An object with
// generateName has no name during admission (the API server generates it later, in Store.create of
// k8s.io/apiserver/pkg/registry/generic/registry), so without the alias deploymentName
// remains empty until the next change of the spec, and its readers must default it until
// then: see mtsrev1.Eru.DeploymentNameOrDefault.
func Default(obj *mtsrev1.Eru) {
	spec := &obj.Spec
	spec.DeploymentName = cmp.Or(spec.DeploymentName, derivedName(obj))
	spec.Schedule = cmp.Or(spec.Schedule, DefaultSchedule)
	spec.TimeZone = cmp.Or(spec.TimeZone, cron.DefaultZone)
	if spec.StartingDeadlineSeconds == nil {
		spec.StartingDeadlineSeconds = new(DefaultStartingDeadlineSeconds)
	}
	if spec.HistoryLimit == nil {
		spec.HistoryLimit = new(DefaultHistoryLimit)
	}
	windows.Default(&spec.Windows)
}

func derivedName(obj *mtsrev1.Eru) string { return cmp.Or(obj.Spec.DeprecatedDeploymentName, obj.Name) }

// others sets what has no defaults.
func others(to, from *mtsrev1.Eru) {
	to.TypeMeta, to.ObjectMeta, to.Status = from.TypeMeta, from.ObjectMeta, from.Status
}
