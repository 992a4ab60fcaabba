// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// Reconciler makes of a workload a Deployment and a Service, and says in a
// status how they are.
type Reconciler struct {
	Writer apply.Writer
	Clock  clock.PassiveClock
}

// Reconcile brings the children of a workload to what it asks for and fills in
// its status. With paused it only looks. It returns what it mended, and an error
// if the attempt is to be made again.
func (r Reconciler) Reconcile(ctx context.Context, w *Workload, paused bool, into *modelv1.WorkloadStatus) ([]apply.Repair, error) {
	deployment, repairs, err := r.children(ctx, w, paused)
	verdict, err := apply.Judge(err)
	if verdict == nil && err != nil {
		return repairs, err
	}
	observe(deployment, into)
	into.Selector = w.Selector().String()
	into.Address = w.Address()
	if verdict == nil {
		progress := Progress(deployment)
		verdict = &progress
	}
	r.conclude(w.Owner, *verdict, paused, into)
	return repairs, err
}

// Refuse fills in the status of an object whose spec cannot work. It was stored
// while the webhook was away, or before a rule existed; what runs is left alone.
func (r Reconciler) Refuse(owner client.Object, errs field.ErrorList, paused bool, into *modelv1.WorkloadStatus) {
	r.conclude(owner, status.Stuck(status.ReasonInvalidSpec, errs.ToAggregate().Error()), paused, into)
}

func (r Reconciler) conclude(owner client.Object, verdict status.Verdict, paused bool, into *modelv1.WorkloadStatus) {
	now := metav1.NewTime(r.Clock.Now())
	into.ObservedGeneration = owner.GetGeneration()
	verdict.Set(&into.Conditions, owner.GetGeneration(), now)
	status.SetPaused(&into.Conditions, paused, owner.GetGeneration(), now)
}

func (r Reconciler) children(ctx context.Context, w *Workload, paused bool) (*appsv1.Deployment, []apply.Repair, error) {
	desired, err := w.Deployment()
	if err != nil {
		return nil, nil, err
	}
	deployment := &apply.Child{Name: w.Owner.GetName(), Live: &appsv1.Deployment{}, Desired: desired}
	service := &apply.Child{Name: w.Owner.GetName(), Live: &corev1.Service{}}
	if desired := w.Service(); desired != nil {
		service.Desired = desired
	}
	writer := r.Writer
	writer.ReadOnly = paused
	repairs, err := writer.Children(ctx, w.Owner, deployment, service)
	return deployment.Live.(*appsv1.Deployment), repairs, err
}
