// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
)

// The defaults. The schema has them as well, but for the Deployment's name.
const (
	DefaultSchedule                = "0 0 * * *"
	DefaultTimeZone                = "Etc/UTC"
	DefaultStartingDeadlineSeconds = int64(600)
	DefaultHistoryLimit            = int32(10)
)

// Default fills in what obj leaves open and records it in ops, which may be nil.
// What was typed is left alone. No default follows another field that can change,
// so the stored object is not looked at.
//
// An object that is created by generateName has no name when admission sees it
// (the API server makes the name later, in Store.create of
// k8s.io/apiserver/pkg/registry/generic/registry), so deploymentName stays empty
// until the next change of the spec, and whoever reads it must default it until
// then.
//
// Default(Default(x)) is Default(x).
func Default(obj, _ *mtsrev1.Eru, ops *patch.Ops) {
	spec := &obj.Spec
	if spec.DeploymentName == "" && obj.Name != "" {
		patch.Set(ops, "/spec/deploymentName", &spec.DeploymentName, obj.Name)
	}
	if spec.Schedule == "" {
		patch.Set(ops, "/spec/schedule", &spec.Schedule, DefaultSchedule)
	}
	if spec.TimeZone == "" {
		patch.Set(ops, "/spec/timeZone", &spec.TimeZone, DefaultTimeZone)
	}
	if spec.StartingDeadlineSeconds == nil {
		patch.Set(ops, "/spec/startingDeadlineSeconds", &spec.StartingDeadlineSeconds, new(DefaultStartingDeadlineSeconds))
	}
	if spec.HistoryLimit == nil {
		patch.Set(ops, "/spec/historyLimit", &spec.HistoryLimit, new(DefaultHistoryLimit))
	}
}
