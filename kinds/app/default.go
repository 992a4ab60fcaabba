// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app holds the defaults and the validation of Apps.
package app

import (
	"cmp"
	"slices"
	"time"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/schedules"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// derived are the fields that have derived values.
var derived = kinds.NewFields("ports.*.name")

// Kind returns the defaults and the rules of Apps, which both processes run.
func Kind() kinds.Kind[appv1.App] {
	return kinds.Kind[appv1.App]{
		GVK:     appv1.SchemeGroupVersion.WithKind("App"),
		Default: Default,
		Codec:   func(_, _ *appv1.App) kinds.Codec[appv1.App] { return others },
		Update: &kinds.Update[appv1.App]{
			Derived:  func(_, _ *appv1.App) kinds.Fields { return derived },
			Possible: func(name *kinds.Leaf, _, _ *appv1.App) bool { return ports.IsDerivedName(name) },
			Keep:     func(app, _, stored *appv1.App) { replicas(app, stored).Keep(&app.Spec.Replicas) },
		},
		Validate:  Validate,
		Immutable: Immutable,
		Warn: func(obj, old *appv1.App, now time.Time) []string {
			was := cmp.Or(old, obj)
			restart := workload.RestartWarning(obj.Spec.RestartOnChange, was.Spec.RestartOnChange)
			held := workload.HoldWarning(obj.Spec.HoldChanges, obj.Spec.Windows, now, func() bool { return workload.SameEffective(Pods(obj), Pods(was)) })
			return slices.Concat(restart, held, Warn(obj), warnReplicas(obj, old), schedules.Warn(schedulesPath, obj.Spec.Schedules, now))
		},
	}
}

// Default sets the defaults of app, which are one replica, those of schedules.Default,
// windows.Default and ports.Default.
func Default(app *appv1.App) {
	if app.Spec.Replicas == nil {
		app.Spec.Replicas = new(int32(1))
	}
	schedules.Default(app.Spec.Schedules)
	windows.Default(&app.Spec.Windows)
	ports.Default(app.Spec.Ports)
}

// others sets what has no defaults.
func others(to, from *appv1.App) {
	to.TypeMeta, to.ObjectMeta, to.Status = from.TypeMeta, from.ObjectMeta, from.Status
	spec := from.Spec
	spec.Replicas, spec.Schedules, spec.Windows, spec.Ports = to.Spec.Replicas, to.Spec.Schedules, to.Spec.Windows, to.Spec.Ports
	to.Spec = spec
}
