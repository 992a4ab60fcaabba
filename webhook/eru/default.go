// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
)

// The defaults. The schema has them as well, except for that of deploymentName.
const (
	DefaultSchedule                = "0 0 * * *"
	DefaultTimeZone                = "Etc/UTC"
	DefaultStartingDeadlineSeconds = int64(600)
	DefaultHistoryLimit            = int32(10)
)

// Default sets the defaults of obj and records them in ops, which may be nil. No default
// is derived from a field that can change, so the stored object is not used.
//
// An object with generateName has no name during admission (the API server generates it
// later, in Store.create of k8s.io/apiserver/pkg/registry/generic/registry), so
// deploymentName remains empty until the next change of the spec, and its readers must
// default it until then.
//
// Default is idempotent.
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
