// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"context"
	"errors"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The reasons of events on Deployments.
const (
	reasonEruCreated        = "EruCreated"
	reasonEruRefused        = "EruRefused"
	reasonNameNotAllowed    = "NameNotAllowed"
	reasonInvalidAnnotation = "InvalidAnnotation"
)

var annotations = field.NewPath("metadata", "annotations")

// Binder creates an Eru of the same name for each Deployment that has the annotation
// mtsrev1.AnnotationEru. It never changes or deletes one: an Eru that exists stays as it is,
// and the garbage collector deletes one that was created here after its Deployment, because
// of its owner reference.
type Binder struct {
	Client client.Client
	// Live reads from the API server before an Eru is created.
	Live     client.Reader
	Recorder events.EventRecorder
}

// watch watches the annotations of Deployments, and the deletion of Erus: after that of an
// Eru which belonged to a deleted Deployment of the same name, another one can be created.
func (b *Binder) watch(mgr manager.Manager) *builder.Builder {
	return builder.ControllerManagedBy(mgr).
		Named("eru-binding").
		For(&appsv1.Deployment{}, builder.WithPredicates(annotated)).
		Watches(&mtsrev1.Eru{}, handler.Funcs{DeleteFunc: (&handler.EnqueueRequestForObject{}).Delete}).
		WithOptions(trigger.Options())
}

// annotated passes Deployments that have the annotation: when they are created, replaced or
// deleted, and when an annotation changes. Nothing is created for one that was deleted.
var annotated = predicate.And(
	predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetAnnotations()[mtsrev1.AnnotationEru] != "" }),
	predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
	}},
)

// Reconcile creates the desired Eru of a Deployment, unless there is one of that name. If
// the annotations are invalid it creates none and emits an event; a change of the
// annotations is another attempt.
func (b *Binder) Reconcile(ctx context.Context, deployment *appsv1.Deployment) (reconcile.Result, error) {
	if deployment.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	obj, errs := desiredEru(deployment)
	if obj == nil && len(errs) == 0 {
		return reconcile.Result{}, nil
	}
	err := b.Client.Get(ctx, client.ObjectKeyFromObject(deployment), &mtsrev1.Eru{})
	_, undecodable := errors.AsType[*cache.UndecodableError](err)
	switch {
	case err == nil, undecodable: // It exists.
		return reconcile.Result{}, nil
	case !apierrors.IsNotFound(err):
		return reconcile.Result{}, fmt.Errorf("reading Eru %q: %w", deployment.Name, err)
	}
	if len(errs) > 0 {
		b.emitInvalid(deployment, errs)
		return reconcile.Result{}, nil
	}
	// An Eru that is deleted each time is created at a limited rate, whatever else changes in the
	// Deployment.
	owner := limit.For(b.Client, deployment.UID, 0)
	if contested := owner.Contested(); contested != nil && contested.Exhausted {
		return apply.Result(contested)
	}
	if exists, err := b.exists(ctx, deployment); !exists {
		return reconcile.Result{}, err
	}
	return apply.Result(b.create(ctx, owner, deployment, obj))
}

// exists reports whether the API server still has the Deployment of the cache. The cache can
// show the deletion of an Eru by the garbage collector before that of its Deployment, and an
// Eru that was created for a deleted Deployment could restart its successor.
func (b *Binder) exists(ctx context.Context, cached *appsv1.Deployment) (bool, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	if err := b.Live.Get(ctx, client.ObjectKeyFromObject(cached), live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return live.UID == cached.UID && live.DeletionTimestamp == nil, nil
}

func (b *Binder) create(ctx context.Context, owner *limit.Owner, deployment *appsv1.Deployment, obj *mtsrev1.Eru) error {
	err := b.Client.Create(ctx, obj, client.FieldOwner(fieldManager), owner)
	if apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	if contested, ok := errors.AsType[*limit.ContestedError](err); ok {
		b.Recorder.Eventf(deployment, nil, corev1.EventTypeWarning, status.ReasonContested, "Bind", "%s", contested.Error())
		return contested
	}
	var refusal *apply.RefusedError
	if err = apply.Refused("creating", obj, err); errors.As(err, &refusal) {
		b.Recorder.Eventf(deployment, nil, corev1.EventTypeWarning, reasonEruRefused, "Bind", "%.1000s", refusal.Error())
	}
	if err == nil {
		b.Recorder.Eventf(deployment, obj, corev1.EventTypeNormal, reasonEruCreated, "Bind",
			"Created Eru %q, because of the annotation %s", obj.Name, mtsrev1.AnnotationEru)
	}
	return err
}

// emitInvalid emits an event on the Deployment that says why no Eru is created for it.
func (b *Binder) emitInvalid(deployment *appsv1.Deployment, errs field.ErrorList) {
	reason, action := reasonInvalidAnnotation, "no Eru is created until the annotation is changed"
	if len(rules.ObjectName(&deployment.ObjectMeta)) > 0 {
		reason, action = reasonNameNotAllowed, "create an Eru of another name yourself, with this Deployment as spec.deploymentName"
	}
	b.Recorder.Eventf(deployment, nil, corev1.EventTypeWarning, reason, "Bind", "%s: %.900s", action, rules.FormatErrors(errs))
}

// desiredEru returns the Eru that a Deployment's annotations specify, nil if they specify
// none, and their errors. It contains no more than the annotations; the rest are defaults.
// The owner reference is not a controller reference, because the Deployment does not manage
// the Eru, and it does not block the owner's deletion, so that it needs no right on the
// Deployment.
func desiredEru(deployment *appsv1.Deployment) (*mtsrev1.Eru, field.ErrorList) {
	var errs field.ErrorList
	read := func(key string, rule func(*field.Path, string) field.ErrorList) string {
		value, ok := deployment.Annotations[key]
		if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1] // Some manifests have quotes within quotes, as '"0 0 * * *"'.
		}
		if ok {
			errs = append(errs, rule(annotations.Key(key), value)...)
		}
		return value
	}
	if read(mtsrev1.AnnotationEru, boolean) != "true" {
		return nil, errs
	}
	meta := metav1.ObjectMeta{
		Namespace: deployment.Namespace,
		Name:      deployment.Name,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: deployment.Name, UID: deployment.UID,
		}},
	}
	errs = rules.ObjectName(&meta)
	obj := &mtsrev1.Eru{ObjectMeta: meta, Spec: mtsrev1.EruSpec{
		DeploymentName: deployment.Name,
		Enabled:        read(mtsrev1.AnnotationEnabled, boolean) == "true",
		Schedule:       read(mtsrev1.AnnotationSchedule, rules.Schedule),
		TimeZone:       read(mtsrev1.AnnotationTimeZone, rules.TimeZone),
	}}
	return obj, errs
}

// boolean refuses an annotation that is not "true", "false" or empty.
func boolean(path *field.Path, value string) field.ErrorList {
	if value == "true" || value == "false" || value == "" {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, []string{"true", "false"})}
}
