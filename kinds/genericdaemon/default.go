// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package genericdaemon holds the defaults and the validation of Genericdaemons.
package genericdaemon

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// Kind returns the defaults and the rules of Genericdaemons, which both processes run.
func Kind() kinds.Kind[mydomainv1beta1.Genericdaemon] {
	return kinds.Kind[mydomainv1beta1.Genericdaemon]{
		GVK:      mydomainv1beta1.SchemeGroupVersion.WithKind("Genericdaemon"),
		Default:  Default,
		Codec:    func(_, _ *mydomainv1beta1.Genericdaemon) kinds.Codec[mydomainv1beta1.Genericdaemon] { return others },
		Validate: Validate,
		Warn: func(obj, old *mydomainv1beta1.Genericdaemon, now time.Time) []string {
			was := cmp.Or(old, obj)
			restart := workload.RestartWarning(obj.Spec.RestartOnChange, was.Spec.RestartOnChange)
			held := workload.HoldWarning(obj.Spec.HoldChanges, obj.Spec.Windows, now, func() bool { return workload.SameEffective(Pods(obj), Pods(was)) })
			return slices.Concat(restart, held, Warn(obj))
		},
	}
}

// Default sets the defaults of rollingUpdate and of windows.
func Default(daemon *mydomainv1beta1.Genericdaemon) {
	if modelv1.IsUnset(daemon.Spec.RollingUpdate) {
		daemon.Spec.RollingUpdate = new(intstr.FromString("10%"))
	}
	windows.Default(&daemon.Spec.Windows)
}

// others sets what has no defaults.
func others(to, from *mydomainv1beta1.Genericdaemon) {
	to.TypeMeta, to.ObjectMeta, to.Status = from.TypeMeta, from.ObjectMeta, from.Status
	spec := from.Spec
	spec.RollingUpdate, spec.Windows = to.Spec.RollingUpdate, to.Spec.Windows
	to.Spec = spec
}
