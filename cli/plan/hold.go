// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
)

// opens returns when the window opens for which a change of the pods waits, nil if it waits for none.
func (o *Object) opens(now time.Time) *time.Time {
	obj := struct {
		Spec struct {
			modelv1.Windows `json:",inline"`
			HoldChanges     modelv1.HoldChanges `json:"holdChanges"`
		} `json:"spec"`
	}{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Stored.Object, &obj)
	at, ok := windows.HeldUntil(obj.Spec.HoldChanges, obj.Spec.Windows, now)
	if err != nil || !ok || now.IsZero() || windows.StartsNow(o.Stored) {
		return nil
	}
	return &at
}
