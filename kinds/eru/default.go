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
	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
)

// Kind returns the defaults and the rules of Erus, which both processes run.
func Kind() kinds.Kind[mtsrev1.Eru] {
	return kinds.Kind[mtsrev1.Eru]{
		GVK:      mtsrev1.SchemeGroupVersion.WithKind("Eru"),
		Default:  Default,
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

// Default sets the defaults of obj and records them in ops, which may be nil. old is the
// stored object on update, nil on create.
//
// deploymentName is derived from its deprecated alias and the name of the object, and
// follows them: see isDerived. An object with generateName has no name during admission
// (the API server generates it later, in Store.create of
// k8s.io/apiserver/pkg/registry/generic/registry), so without the alias deploymentName
// remains empty until the next change of the spec, and its readers must default it until
// then: see mtsrev1.Eru.DeploymentNameOrDefault.
//
// Default is idempotent.
func Default(obj, old *mtsrev1.Eru, ops *patch.Ops) {
	spec := &obj.Spec
	now := derivedName(obj)
	if spec.DeploymentName != now && now != "" && (spec.DeploymentName == "" || isDerived(obj, old)) {
		patch.Set(ops, deploymentNamePointer, &spec.DeploymentName, now)
	}
	if spec.Schedule == "" {
		patch.Set(ops, "/spec/schedule", &spec.Schedule, DefaultSchedule)
	}
	if spec.TimeZone == "" {
		patch.Set(ops, "/spec/timeZone", &spec.TimeZone, cron.DefaultZone)
	}
	if spec.StartingDeadlineSeconds == nil {
		patch.Set(ops, "/spec/startingDeadlineSeconds", &spec.StartingDeadlineSeconds, new(DefaultStartingDeadlineSeconds))
	}
	if spec.HistoryLimit == nil {
		patch.Set(ops, "/spec/historyLimit", &spec.HistoryLimit, new(DefaultHistoryLimit))
	}
	windows.Default(&spec.Windows, ops)
}

const deploymentNamePointer = "/spec/deploymentName"

// derivedName returns the default of deploymentName, "" if the object has no name yet.
func derivedName(obj *mtsrev1.Eru) string {
	return cmp.Or(obj.Spec.DeprecatedDeploymentName, obj.Name)
}

// isDerived reports whether the deploymentName of an update is the default that the stored
// object has, and no client set it. Without managedFields, the owners of the fields are not
// known, and the value alone decides.
func isDerived(obj, old *mtsrev1.Eru) bool {
	name := obj.Spec.DeploymentName
	if old == nil || old.Spec.DeploymentName != name || derivedName(old) != name {
		return false
	}
	owners := fieldownership.Of(&obj.ObjectMeta)
	return !owners.IsSet(deploymentNamePointer, func(value any) bool { return value == name })
}
