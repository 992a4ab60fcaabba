// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"time"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// Kind returns the defaults and the rules of Erus, which both processes run.
func Kind() kinds.Kind[mtsrev1.Eru] {
	return kinds.Kind[mtsrev1.Eru]{
		GVK:      mtsrev1.SchemeGroupVersion.WithKind("Eru"),
		Default:  Default,
		Validate: Validate,
		Warn:     func(obj *mtsrev1.Eru) []string { return Warn(obj, time.Now()) },
	}
}
