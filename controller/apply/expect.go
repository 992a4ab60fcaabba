// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// Generation expects a child with the generation of the one in the cache, from which it was decided whether a rollout may begin: a write
// whose answer was lost, or one of another leader, has perhaps begun one since.
type Generation int64

// Check returns ErrStale for another generation.
func (g Generation) Check(live client.Object) error {
	if have := live.GetGeneration(); have != int64(g) {
		return fmt.Errorf("%s %q is not written: it has generation %d, but %w %d", kinds.KindOf(live), live.GetName(), have, ErrStale, g)
	}
	return nil
}
