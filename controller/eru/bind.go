// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/webhook/eru"
	"github.com/modelbox-operator/modelbox-operator/webhook/rules"
)

// The reasons of events on Deployments.
const (
	reasonEruCreated        = "EruCreated"
	reasonEruRefused        = "EruRefused"
	reasonNameNotAllowed    = "NameNotAllowed"
	reasonInvalidAnnotation = "InvalidAnnotation"
)

var annotations = field.NewPath("metadata", "annotations")

// Binder gives each Deployment that is annotated with mtsrev1.AnnotationEru an Eru
// of its own name. It creates, and never changes or deletes: an Eru that is there
// stays as it is, and one that was created here goes with its Deployment, by its
// owner reference and the garbage collector.
type Binder struct {
	Client client.Client
	// Live reads from the API server, before an Eru is created.
	Live     client.Reader
	Recorder events.EventRecorder
}

// watch watches Deployments for their annotations, and Erus for their end: one that
// belonged to a Deployment of the same name that is gone makes room for another.
func (b *Binder) watch(mgr manager.Manager) *builder.Builder {
	return builder.ControllerManagedBy(mgr).
		Named("eru-binding").
		For(&appsv1.Deployment{}, builder.WithPredicates(annotated)).
		Watches(&mtsrev1.Eru{}, apply.SameName(), builder.WithPredicates(gone)).
		WithOptions(controller.Options{RateLimiter: apply.Backoff()})
}

// annotated lets through Deployments that say something of an Eru, when they come
// and when they say something else.
var annotated = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetAnnotations()[mtsrev1.AnnotationEru] != "" },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectNew.GetAnnotations()[mtsrev1.AnnotationEru] != "" &&
			(said(e.ObjectOld) != said(e.ObjectNew) || e.ObjectOld.GetUID() != e.ObjectNew.GetUID())
	},
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

func said(obj client.Object) [4]string {
	a := obj.GetAnnotations()
	return [...]string{
		a[mtsrev1.AnnotationEru], a[mtsrev1.AnnotationSchedule], a[mtsrev1.AnnotationTimeZone], a[mtsrev1.AnnotationEnabled],
	}
}

// gone lets through objects that are gone.
var gone = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// Reconcile creates the Eru that a Deployment asks for, unless there is one of that
// name. What cannot be created as it is asked for is not created at all: an event
// says why, and a change of the annotations is another attempt.
func (b *Binder) Reconcile(ctx context.Context, deployment *appsv1.Deployment) (reconcile.Result, error) {
	if deployment.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	obj, errs := bound(deployment)
	if obj == nil && len(errs) == 0 {
		return reconcile.Result{}, nil
	}
	switch err := b.Client.Get(ctx, client.ObjectKeyFromObject(deployment), &mtsrev1.Eru{}); {
	case err == nil:
		return reconcile.Result{}, nil
	case !apierrors.IsNotFound(err):
		return reconcile.Result{}, fmt.Errorf("reading Eru %q: %w", deployment.Name, err)
	}
	if len(errs) > 0 {
		b.complain(deployment, errs)
		return reconcile.Result{}, nil
	}
	if exists, err := b.exists(ctx, deployment); !exists {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, b.create(ctx, deployment, obj)
}

// exists asks the API server whether there still is the Deployment of the cache. The
// garbage collector's deletion of an Eru may be seen before that of its Deployment, and
// an Eru that was created for a deleted Deployment could restart its successor.
func (b *Binder) exists(ctx context.Context, cached *appsv1.Deployment) (bool, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	if err := b.Live.Get(ctx, client.ObjectKeyFromObject(cached), live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return live.UID == cached.UID && live.DeletionTimestamp == nil, nil
}

func (b *Binder) create(ctx context.Context, deployment *appsv1.Deployment, obj *mtsrev1.Eru) error {
	err := b.Client.Create(ctx, obj, client.FieldOwner(fieldManager))
	if apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	var refusal *apply.RefusedError
	if err = apply.Refused("creating", obj, err); errors.As(err, &refusal) {
		b.Recorder.Eventf(deployment, nil, corev1.EventTypeWarning, reasonEruRefused, "Bind", "%.1000s", refusal.Error())
	}
	if err == nil {
		b.Recorder.Eventf(deployment, obj, corev1.EventTypeNormal, reasonEruCreated, "Bind",
			"Eru %q was created, as the annotation %s asks", obj.Name, mtsrev1.AnnotationEru)
	}
	return err
}

// complain tells, by an event on the Deployment, why it gets no Eru.
func (b *Binder) complain(deployment *appsv1.Deployment, errs field.ErrorList) {
	reason, wayOut := reasonInvalidAnnotation, "no Eru is created until the annotation is changed"
	if len(rules.ObjectName(&deployment.ObjectMeta)) > 0 {
		reason, wayOut = reasonNameNotAllowed, "create an Eru of another name yourself, with this Deployment as spec.deploymentName"
	}
	b.Recorder.Eventf(deployment, nil, corev1.EventTypeWarning, reason, "Bind", "%s: %.900s", wayOut, status.Describe(errs))
}

// bound is the Eru that a Deployment's annotations ask for, nil if they ask for
// none, and all that is wrong with them. It says no more than the annotations do;
// the rest are defaults. The owner reference is no controller's, for the Deployment
// does not manage the Eru, and it blocks nothing, so that it needs no right on the
// Deployment.
func bound(deployment *appsv1.Deployment) (*mtsrev1.Eru, field.ErrorList) {
	asks, errs := flag(deployment, mtsrev1.AnnotationEru)
	if !asks {
		return nil, errs
	}
	enabled, errs := flag(deployment, mtsrev1.AnnotationEnabled)
	obj := &mtsrev1.Eru{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: deployment.Namespace,
			Name:      deployment.Name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: deployment.Name, UID: deployment.UID,
			}},
		},
		Spec: mtsrev1.EruSpec{DeploymentName: deployment.Name, Enabled: enabled},
	}
	errs = append(rules.ObjectName(&obj.ObjectMeta), errs...)
	var wrong field.ErrorList
	obj.Spec.Schedule, wrong = value(deployment, mtsrev1.AnnotationSchedule, eru.Schedule)
	errs = append(errs, wrong...)
	obj.Spec.TimeZone, wrong = value(deployment, mtsrev1.AnnotationTimeZone, eru.TimeZone)
	return obj, append(errs, wrong...)
}

// flag reads an annotation that is "true" or "false", false if it is absent.
func flag(deployment *appsv1.Deployment, key string) (bool, field.ErrorList) {
	switch value := deployment.Annotations[key]; value {
	case "true":
		return true, nil
	case "false", "":
		return false, nil
	default:
		return false, field.ErrorList{field.NotSupported(annotations.Key(key), value, []string{"true", "false"})}
	}
}

// value reads an annotation and judges it by a rule, if it is there.
func value(deployment *appsv1.Deployment, key string, rule func(*field.Path, string) field.ErrorList) (string, field.ErrorList) {
	value, ok := deployment.Annotations[key]
	if !ok {
		return "", nil
	}
	return value, rule(annotations.Key(key), value)
}
