// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// Expectation is what a child must be like in the API server before it is changed.
type Expectation interface {
	// Check returns an error, for which nothing is written.
	Check(live client.Object) error
}

// Selector expects a Deployment with the selector of an adopted object. The API server would refuse
// to change it, and the Service would select other pods.
type Selector map[string]string

// Check returns a status.Readiness that says how the object can be adopted again.
func (s Selector) Check(live client.Object) error {
	deployment, ok := live.(*appsv1.Deployment)
	if !ok {
		return nil
	}
	have := metav1.FormatLabelSelector(deployment.Spec.Selector)
	want := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: s})
	if have == want {
		return nil
	}
	return status.NewStalled(status.ReasonInvalidSpec, fmt.Sprintf("spec.selector is %s, but Deployment %q has the selector %s, and neither can be changed: "+
		"nothing is written; delete this object with --cascade=orphan, and adopt the Deployment again", want, live.GetName(), have))
}

// Configuration expects a pod template with this value of the annotation of the configuration, from
// which the desired one was computed.
type Configuration string

// Check returns ErrStale for another value: another leader has written it.
func (c Configuration) Check(live client.Object) error {
	if have := kinds.PodTemplate(live).Annotations[api.AnnotationConfiguration]; have != string(c) {
		return fmt.Errorf("the configuration in the pod template of %q has changed, and %w it", live.GetName(), ErrStale)
	}
	return nil
}
