// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/genericdaemon"
)

// Children returns the desired DaemonSet of a Genericdaemon that has its defaults and no
// errors. It is pure.
func Children(daemon *mydomainv1beta1.Genericdaemon) ([]client.Object, error) {
	set, err := daemonSet(daemon)
	if err != nil {
		return nil, err
	}
	return []client.Object{set}, nil
}

// desired returns the desired DaemonSet of a Genericdaemon that has its defaults. If the
// errors of its spec leave open what it has to be, it returns a *status.InvalidSpecError,
// and a child without a desired state. It is pure.
func desired(daemon *mydomainv1beta1.Genericdaemon, errs field.ErrorList) (*workload.Children, error) {
	into := &daemon.Status
	o := &observer{pods: &apply.Child{Live: &appsv1.DaemonSet{}}, label: daemon.Spec.Label, into: into}
	children := &workload.Children{
		Owner: daemon, Paused: daemon.Spec.Paused, Pods: o.pods, Observer: o,
		ObservedGeneration: &into.ObservedGeneration, Conditions: &into.Conditions, Problems: &into.Problems,
	}
	if err := workload.Buildable(errs); err != nil {
		return children, err
	}
	set, err := daemonSet(daemon)
	if err != nil {
		return children, err
	}
	children.Pods.Desired = set
	return children, nil
}

// daemonSet returns the desired DaemonSet of a Genericdaemon that has its defaults.
func daemonSet(daemon *mydomainv1beta1.Genericdaemon) (*appsv1.DaemonSet, error) {
	pods := &workload.Workload{Owner: daemon, OwnerKind: kind, Pods: genericdaemon.Pods(daemon)}
	template, err := pods.Template()
	if err != nil {
		return nil, err
	}
	step := modelv1.IntOrPercent(*daemon.Spec.RollingUpdate)
	return &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "DaemonSet"},
		ObjectMeta: pods.ObjectMeta(),
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: pods.Selector()},
			Template: template,
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &step},
			},
		},
	}, nil
}
