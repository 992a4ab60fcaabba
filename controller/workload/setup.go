// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/configuration"
	"github.com/modelbox-operator/modelbox-operator/controller/freeze"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/schedules"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/controller/watches"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// Shared is what the controllers of all kinds have in common.
type Shared struct {
	Clock clock.PassiveClock
	// Fetcher is what the operator decides of the container that fetches a model.
	Fetcher models.Fetcher
	// Queue bounds the rollouts of changed configuration of all kinds; nil is no bound.
	Queue *configuration.RolloutQueue
	// Watches are the informers of the optional children; nil for a kind that has none.
	Watches *watches.Watches
	// IndexAutoscalers adds the index of schedules.Autoscalers, which kinds with replicas read.
	IndexAutoscalers func() error
}

// Reconciler has the steps that are the same for all kinds with pods.
type Reconciler struct {
	Shared
	Writer apply.Writer
	// Schedules sets the replicas of the object at scheduled times.
	Schedules schedules.Step
	// Problems finds out why the pods are not available; it may be nil.
	Problems *problems.Diagnoser
	// Configuration is what the objects with spec.restartOnChange refer to; nil if that has no
	// effect.
	Configuration *configuration.Sources
	Freeze        freeze.Reader

	kind schema.GroupVersionKind
}

// New returns the steps of a kind with the clients of a manager.
func New(mgr manager.Manager, kind schema.GroupVersionKind, shared Shared) Reconciler {
	writer, live, clk := apply.NewWriter(mgr), mgr.GetAPIReader(), shared.Clock
	reader := freeze.Reader{Live: live}
	return Reconciler{
		Shared: shared, Writer: writer, kind: kind, Freeze: reader,
		Schedules:     schedules.Step{Client: mgr.GetClient(), Recorder: writer.Recorder, Clock: clk, Freeze: reader},
		Problems:      &problems.Diagnoser{Reader: live, Clock: clk},
		Configuration: configuration.New(mgr, clk),
	}
}

// Setup adds the controller of a kind to a manager, whose steps are a part of reconciler. It
// reconciles an object when the object or its children change.
func Setup[T status.Object](mgr manager.Manager, obj T, reconciler status.Reconciler[T], steps *Reconciler, children ...client.Object) error {
	watches := builder.ControllerManagedBy(mgr).
		Named(strings.ToLower(steps.kind.Kind)).
		For(obj, trigger.Changed()).
		WithOptions(trigger.Options())
	// Children have the name of their owner, but for a Service in spec.service.name. That of an owner
	// reference would not do: an object of another owner that prevents the creation of a child is
	// seen when it is created and when it is deleted.
	for _, child := range children {
		changed := builder.WithPredicates(trigger.ChildChanged(steps.kind.GroupKind()))
		watches.Watches(child, &handler.EnqueueRequestForObject{}, changed)
		if _, isService := child.(*corev1.Service); isService {
			named := services[T](mgr, steps.kind)
			if err := named.Index(context.Background(), mgr.GetFieldIndexer()); err != nil {
				return fmt.Errorf("indexing the names of Services: %w", err)
			}
			watches.Watches(child, named.EnqueueNamed(), changed)
		}
	}
	controller, err := watches.Build(status.NewReconciler(mgr.GetClient(), steps.Writer.Recorder, reconciler,
		status.Options{Clock: steps.Clock, OnGone: steps.forget}))
	if err != nil {
		return err
	}
	steps.Configuration.Enqueue(controller)
	if steps.Watches == nil {
		return nil
	}
	if err := steps.IndexAutoscalers(); err != nil {
		return fmt.Errorf("indexing HorizontalPodAutoscalers: %w", err)
	}
	return steps.Watches.Add(mgr, steps.Clock, controller, steps.kind.GroupKind())
}

// services indexes the objects of a kind by the name of their Service if that is not the name of the object.
func services[T status.Object](mgr manager.Manager, kind schema.GroupVersionKind) *trigger.Target[T] {
	return &trigger.Target[T]{
		Client: mgr.GetClient(),
		List: func() client.ObjectList {
			list, err := mgr.GetScheme().New(kind.GroupVersion().WithKind(kind.Kind + "List"))
			utilruntime.Must(err)
			return list.(client.ObjectList)
		},
		Name: func(obj T) string {
			if name := kinds.ChildName(obj, &corev1.Service{}); name != obj.GetName() {
				return name
			}
			return ""
		},
	}
}

// forget removes what is held of an owner that was deleted.
func (r *Reconciler) forget(owner types.NamespacedName) {
	r.Problems.Forget(owner)
	r.Configuration.Forget(owner)
	r.Queue.Remove(r.subject(owner))
}
