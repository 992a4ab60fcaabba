// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app holds the defaults and the validation of Apps.
package app

import (
	"cmp"
	"slices"
	"time"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/kinds/schedules"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// Kind returns the defaults and the rules of Apps, which both processes run.
func Kind() kinds.Kind[appv1.App] {
	return kinds.Kind[appv1.App]{
		GVK:       appv1.SchemeGroupVersion.WithKind("App"),
		Default:   Default,
		Validate:  Validate,
		Immutable: Immutable,
		Warn: func(obj, old *appv1.App, now time.Time) []string {
			restart := workload.RestartWarning(obj.Spec.RestartOnChange, cmp.Or(old, obj).Spec.RestartOnChange)
			return slices.Concat(restart, Warn(obj), warnReplicas(obj, old), schedules.Warn(schedulesPath, obj.Spec.Schedules, now))
		},
	}
}

// Default sets the defaults of app, which are one replica, those of schedules.Default,
// windows.Default and ports.Default, and records them in ops, which may be nil. old is the stored
// object on update, nil on create. Default is idempotent.
func Default(app, old *appv1.App, ops *patch.Ops) {
	if app.Spec.Replicas == nil {
		patch.Set(ops, "/spec/replicas", &app.Spec.Replicas, new(int32(1)))
	}
	if old != nil {
		replicas(app, old).Keep(&app.Spec.Replicas, ops)
	}
	schedules.Default(app.Spec.Schedules, ops)
	windows.Default(&app.Spec.Windows, ops)
	var before []modelv1.Port
	var owners fieldownership.Ownership // Empty on create, because the client sets all fields of a new object.
	if old != nil {
		before, owners = old.Spec.Ports, fieldownership.Of(&app.ObjectMeta)
	}
	ports.Default(app.Spec.Ports, before, &owners, ops)
}
