// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status turns the observed state of an object into its conditions, and writes
// its status: once in a reconcile, last, and only when it differs.
package status

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Object is an object of a kind of this project.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
	// GetStatus returns a pointer to status.
	GetStatus() any
}

type writeAheadKey struct{}

// WriteAhead writes the status that the object of a reconcile has now, whether it differs or not. ctx is that of a
// Reconcile which Recorded calls. It is called before a write to an object that is not a child, and which therefore has no
// annotation that names the generation it was written for: an object that has changed since it entered the
// cache (another spec, or the status of another leader) causes a conflict, so that nothing is written to
// the other one. Reconcile returns the error as it is.
func WriteAhead(ctx context.Context) error {
	return ctx.Value(writeAheadKey{}).(func(context.Context) error)(ctx)
}

// Options are what differs between the kinds. The zero value is valid.
type Options struct {
	// OnGone is called for each object that was deleted, or that cannot be decoded.
	OnGone func(types.NamespacedName)
	// Undecodable are the members of the status of an object that cannot be decoded, beside observedGeneration and
	// conditions, which all kinds have. nil removes a member.
	Undecodable map[string]any
}

// Recorded wraps the reconciler of a kind with what is the same for all kinds: it reads the
// object from the cache and does nothing for one that is deleted or being deleted, because
// the garbage collector deletes its children. After the reconcile it writes the status if
// that differs, and then emits a Warning event if Ready turned False for a new reason while
// the object does not progress. Nothing else that the reconciler changes in the object,
// such as its defaults, is written.
//
// The object's resourceVersion is a precondition of every write, so that a stale cache, or a
// former leader, replaces no newer status. The watch event of the newer version is the retry.
func Recorded[T Object](c client.Client, events events.EventRecorder, kind reconcile.ObjectReconciler[T], options Options) reconcile.Reconciler {
	return &recorder[T]{Options: options, client: c, events: events, kind: kind, name: reflect.TypeFor[T]().Elem().Name()}
}

type recorder[T Object] struct {
	Options
	client client.Client
	events events.EventRecorder
	kind   reconcile.ObjectReconciler[T]
	// name is the kind's name, such as ModelBox.
	name string
}

// errStale reports that the API server has a newer version of the object than the cache.
var errStale = errors.New("the informer cache does not have the last change of the object yet")

// retryStale is when a stale object is reconciled again if no watch event comes, as after a
// conflict that something between the controller and the API server made up.
const retryStale = 5 * time.Second

// Reconcile makes a span of each reconcile, which is not sent unless the process has a collector. The
// span has the name of the object, and nothing else of it.
func (r *recorder[T]) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, span := otel.Tracer("modelbox-controller").Start(ctx, "reconcile "+r.name)
	span.SetAttributes(attribute.String("namespace", req.Namespace), attribute.String("name", req.Name))
	defer span.End()
	result, err := r.reconcileNamed(ctx, req)
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	return result, err
}

func (r *recorder[T]) reconcileNamed(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	err := r.client.Get(ctx, req.NamespacedName, obj)
	ctx = limit.For(ctx, r.client, obj.GetUID(), obj.GetGeneration())
	failure, undecodable := errors.AsType[*cache.UndecodableError](err)
	if r.OnGone != nil && (undecodable || apierrors.IsNotFound(err)) {
		r.OnGone(req.NamespacedName)
	}
	switch {
	case apierrors.IsNotFound(err) || obj.GetDeletionTimestamp() != nil:
		notReadyObjects.set(r.name, req.NamespacedName, "")
		return reconcile.Result{}, nil
	case undecodable:
		return result(reconcile.Result{}, r.undecodable(ctx, obj, failure))
	case err != nil:
		return reconcile.Result{}, err
	}
	return result(r.reconcile(ctx, obj))
}

// result returns the result of a reconcile whose error may be that the object is stale, or that its
// status is to be written later. Another error is returned by the next reconcile then.
func result(result reconcile.Result, err error) (reconcile.Result, error) {
	later, early := errors.AsType[*limit.LaterError](err)
	switch {
	case early:
		return reconcile.Result{RequeueAfter: later.After}, nil
	case errors.Is(err, errStale):
		return reconcile.Result{RequeueAfter: retryStale}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	return result, nil
}

// reconcile calls the reconciler of the kind and writes the status that it set.
func (r *recorder[T]) reconcile(ctx context.Context, obj T) (reconcile.Result, error) {
	before, err := json.Marshal(obj.GetStatus())
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("encoding status: %w", err)
	}
	clamp(reflect.ValueOf(obj.GetStatus()).Elem())
	reason := readyReason(obj)
	writeAhead := func(ctx context.Context) (err error) {
		before, err = r.writeAhead(ctx, obj, before)
		return err
	}
	result, err := r.kind.Reconcile(context.WithValue(ctx, writeAheadKey{}, writeAhead), obj)
	notReadyObjects.observe(r.name, obj)
	after, encodingErr := encode(obj)
	if encodingErr != nil || bytes.Equal(before, after) || errors.Is(err, errStale) {
		return result, errors.Join(err, encodingErr)
	}
	warning := r.warning(obj, reason)
	writeErr := r.write(ctx, obj, before, after)
	if writeErr == nil {
		r.emit(obj, warning)
	}
	if errors.Is(writeErr, errStale) && err != nil {
		writeErr = nil // The retry writes status.
	}
	return result, errors.Join(err, client.IgnoreNotFound(writeErr))
}

// encode returns the status of an object, as it can be stored, in JSON.
func encode(obj Object) ([]byte, error) {
	clamp(reflect.ValueOf(obj.GetStatus()).Elem())
	return json.Marshal(obj.GetStatus())
}

// writeAhead writes the status that the object has now to the version of the object that
// was read, and returns it.
func (r *recorder[T]) writeAhead(ctx context.Context, obj T, before []byte) ([]byte, error) {
	after, err := encode(obj)
	if err != nil {
		return before, fmt.Errorf("encoding status: %w", err)
	}
	// The client decodes the response into the object that it is given, and obj has defaults
	// that are not stored.
	response := obj.DeepCopyObject().(T)
	if err := r.write(ctx, response, before, after); err != nil {
		return before, err
	}
	obj.SetResourceVersion(response.GetResourceVersion())
	return after, nil
}

// write writes what differs between two states of a status, as JSON, to the version of obj
// that was read, and decodes the response into obj. It returns errStale if the API server has
// another version.
func (r *recorder[T]) write(ctx context.Context, obj client.Object, before, after []byte, with ...client.SubResourcePatchOption) error {
	difference, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return fmt.Errorf("comparing status: %w", err)
	}
	body := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"status":%s}`, obj.GetResourceVersion(), difference)
	err = r.client.Status().Patch(ctx, obj, client.RawPatch(types.MergePatchType, body), with...)
	if apierrors.IsConflict(err) {
		return errStale
	}
	if err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	return nil
}

// undecodable writes into the status of an object that cannot be decoded why it is not
// reconciled. The reconciler of its kind is not called, because it would build children from the
// part that could be decoded, or delete them. What was observed earlier stays in status, unless
// it is status that cannot be decoded.
func (r *recorder[T]) undecodable(ctx context.Context, obj T, failure *cache.UndecodableError) error {
	notReadyObjects.set(r.name, client.ObjectKeyFromObject(obj), ReasonInvalidSpec)
	reason, conditions := readyReason(obj), obj.GetConditions()
	NewStalled(ReasonInvalidSpec, "the stored object cannot be decoded, so it is not reconciled: "+failure.Error()).
		SetConditions(&conditions, obj.GetGeneration(), metav1.Now())
	clamp(reflect.ValueOf(&conditions).Elem())
	// What was written to children is found out anew, in the few kinds that have it.
	members := map[string]any{"observedGeneration": obj.GetGeneration(), "conditions": conditions, "children": nil}
	maps.Copy(members, r.Undecodable)
	after, err := json.Marshal(members)
	if err == nil && !failure.StatusToo {
		after, err = jsonpatch.MergePatch(failure.Status, after)
	}
	if err != nil {
		return fmt.Errorf("encoding status: %w", err)
	}
	if jsonpatch.Equal(failure.Status, after) {
		return nil
	}
	// The response is read as metadata alone, because the object cannot be decoded.
	named := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: obj.GetNamespace(), Name: obj.GetName(), ResourceVersion: obj.GetResourceVersion(),
	}}
	named.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	err = r.write(ctx, named, failure.Status, after, client.DisableReadYourWritesConsistency)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("the stored object cannot be decoded (%w): %w", failure, err)
	}
	if err == nil && reason != ReasonInvalidSpec {
		r.emit(obj, &metav1.Condition{Reason: ReasonInvalidSpec, Message: failure.Error()})
	}
	return nil
}

// warning returns the condition that is worth a Warning event, nil if there is none: the object
// needs a change from outside for another reason than before. A status that stays the same is
// not worth an event, and neither is an object's own spec.paused.
func (r *recorder[T]) warning(obj T, before string) *metav1.Condition {
	conditions := obj.GetConditions()
	ready := meta.FindStatusCondition(conditions, ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || ready.Reason == ReasonPaused || ready.Reason == before ||
		meta.IsStatusConditionTrue(conditions, ConditionReconciling) {
		return nil
	}
	return ready.DeepCopy() // The response to the write is decoded into obj.
}

// emit emits a Warning event, with as much of the message as an event holds: 1 kB.
func (r *recorder[T]) emit(obj T, warning *metav1.Condition) {
	if warning != nil {
		r.events.Eventf(obj, nil, corev1.EventTypeWarning, warning.Reason, "Reconcile", "%s", rules.Cut(warning.Message, 1000))
	}
}

// readyReason returns the reason of the Ready condition, "" if there is none.
func readyReason(obj Object) string {
	if ready := meta.FindStatusCondition(obj.GetConditions(), ConditionReady); ready != nil {
		return ready.Reason
	}
	return ""
}

// notReadyObjects counts the objects of the process that are not ready. Only these use memory.
var notReadyObjects = &reasonCounts{
	gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "modelbox_objects_not_ready",
		Help: "Objects whose condition Ready was not True after their last reconcile, by kind and by the reason of the condition. " +
			"Only the leader has series.",
	}, []string{"kind", "reason"}),
	objects: map[objectKey]string{}, reasons: map[string]string{},
}

func init() { metrics.Registry.MustRegister(notReadyObjects.gauge) }

type reasonCounts struct {
	gauge *prometheus.GaugeVec

	mu      sync.Mutex
	objects map[objectKey]string
	// reasons has each reason once, and no more than maxReasons: the operator has fewer, and
	// another client could write any text into a status.
	reasons map[string]string
}

const maxReasons = 50

type objectKey struct {
	kind string
	types.NamespacedName
}

// observe counts an object as its conditions are.
func (r *reasonCounts) observe(kind string, obj Object) {
	reason := ""
	if ready := meta.FindStatusCondition(obj.GetConditions(), ConditionReady); ready != nil && ready.Status != metav1.ConditionTrue {
		reason = ready.Reason
	}
	r.set(kind, client.ObjectKeyFromObject(obj), reason)
}

// set counts an object as not ready for a reason, or no longer if the reason is empty.
func (r *reasonCounts) set(kind string, name types.NamespacedName, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := objectKey{kind, name}
	if before, counted := r.objects[key]; counted {
		r.gauge.WithLabelValues(kind, before).Dec()
		delete(r.objects, key)
	}
	if reason == "" {
		return
	}
	if _, known := r.reasons[reason]; !known && len(r.reasons) >= maxReasons {
		reason = "other"
	}
	if _, known := r.reasons[reason]; !known {
		reason = strings.Clone(reason) // The text is part of the memory of the whole status.
		r.reasons[reason] = reason
	}
	r.objects[key] = r.reasons[reason]
	r.gauge.WithLabelValues(kind, reason).Inc()
}

// The condition types. Ready is present from the first reconcile on, as ConditionAvailable is for
// the kinds with pods; the others are
// present only while they are true, as kstatus reads them
// (https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md).
const (
	ConditionReady       = api.ConditionReady
	ConditionReconciling = "Reconciling"
	ConditionStalled     = api.ConditionStalled
	ConditionPaused      = "Paused"
)

// The reasons that all kinds share.
const (
	ReasonReady              = "Ready"
	ReasonProgressing        = "Progressing"
	ReasonPaused             = "Paused"
	ReasonNameConflict       = "NameConflict"
	ReasonConflict           = "Conflict"
	ReasonInvalidSpec        = "InvalidSpec"
	ReasonChildRefused       = "ChildRefused"
	ReasonContested          = "Contested"
	ReasonRewritten          = "Rewritten"
	ReasonReplicaFailure     = "ReplicaFailure"
	ReasonProgressDeadline   = "ProgressDeadlineExceeded"
	ReasonTerminating        = "Terminating"
	ReasonWaitingForDeletion = "WaitingForDeletion"
	ReasonFrozen             = "Frozen"
)

// ownConditions are the types of all conditions that the operator sets.
var ownConditions = []string{ConditionReady, ConditionAvailable, ConditionReconciling, ConditionStalled, ConditionPaused}

// SetCondition is meta.SetStatusCondition for what may be copied from another object.
func SetCondition(conditions *[]metav1.Condition, condition metav1.Condition) {
	clamp(reflect.ValueOf(&condition).Elem())
	meta.SetStatusCondition(conditions, condition)
}

// IsObserved reports whether a status is one of the current spec of a child, from the generation
// of the child and the one in its status.
func IsObserved(generation, observed int64) bool { return generation > 0 && observed >= generation }

// Readiness is the observed state of an object in the form of its conditions: whether it
// is Ready, and if it is not, whether it progresses (Reconciling) or needs a change from
// outside (Stalled).
type Readiness struct {
	Ready       bool
	Reconciling bool
	Stalled     bool
	// Reason is one word in CamelCase. Message is a sentence that says what to do.
	Reason  string
	Message string
}

// Error makes a readiness the error of what keeps an object from its desired state, and has a meaning for its status alone: a
// retry before the next watch event is of no use.
func (r Readiness) Error() string { return r.Message }

// HasReason reports whether an error is a readiness with a reason.
func HasReason(err error, reason string) bool {
	readiness, ok := errors.AsType[Readiness](err)
	return ok && readiness.Reason == reason
}

// NewReady returns the readiness of an object whose observed state is the desired state.
func NewReady(message string) Readiness {
	return Readiness{Ready: true, Reason: ReasonReady, Message: message}
}

// NewReconciling returns the readiness of an object that progresses by itself.
func NewReconciling(reason, message string) Readiness {
	return Readiness{Reconciling: true, Reason: reason, Message: message}
}

// Progressing returns the readiness of an object whose children have been applied and are
// not available yet, with a formatted message.
func Progressing(format string, args ...any) Readiness {
	return NewReconciling(ReasonProgressing, fmt.Sprintf(format, args...))
}

// NewStalled returns the readiness of an object that progresses only after a change of its
// spec or of the cluster.
func NewStalled(reason, message string) Readiness {
	return Readiness{Stalled: true, Reason: reason, Message: message}
}

// AppendMessage appends a sentence to the message, unless it is empty.
func (r *Readiness) AppendMessage(sentence string) {
	if sentence != "" {
		r.Message += "; " + sentence
	}
}

// SetNotReady makes an object not ready whose pods do not have all that is desired: because admission rewrote some of it,
// which stays so (stalled), or because something waits. The sentence says what; it is empty if nothing is missing.
func (r *Readiness) SetNotReady(reason, sentence string, stalled bool) {
	if sentence != "" && r.Ready {
		r.Ready, r.Stalled, r.Reason = false, stalled, reason
	}
	r.AppendMessage(sentence)
}

// WithSpecErrors returns the readiness with the errors of a spec appended to the message, not ready if one of its fields
// is not in effect. Such a spec was stored while the webhook was away, or before a rule existed, and was reconciled all
// the same. The reason InvalidSpec means that the message has them already.
func (r Readiness) WithSpecErrors(errs field.ErrorList) Readiness {
	if len(errs) == 0 || r.Reason == ReasonInvalidSpec {
		return r
	}
	sentence := "spec is invalid under the current rules: " + rules.FormatErrors(errs)
	if len(rules.Ineffective(errs)) > 0 {
		r.SetNotReady(ReasonInvalidSpec, sentence, true)
	} else {
		r.AppendMessage(sentence)
	}
	return r
}

// SetConditions sets the conditions of an object of the given generation.
func (r Readiness) SetConditions(conditions *[]metav1.Condition, generation int64, now metav1.Time) {
	condition := metav1.Condition{
		Type:               ConditionReady,
		Status:             metav1.ConditionFalse,
		ObservedGeneration: generation,
		LastTransitionTime: now,
		Reason:             r.Reason,
		Message:            r.Message,
	}
	if r.Ready {
		condition.Status = metav1.ConditionTrue
	}
	SetCondition(conditions, condition)
	condition.Type = ConditionReconciling
	setWhile(r.Reconciling, conditions, condition)
	condition.Type = ConditionStalled
	setWhile(r.Stalled, conditions, condition)
}

// setWhile sets a condition to True while value is true, and removes it otherwise.
func setWhile(value bool, conditions *[]metav1.Condition, condition metav1.Condition) {
	if !value {
		meta.RemoveStatusCondition(conditions, condition.Type)
		return
	}
	condition.Status = metav1.ConditionTrue
	SetCondition(conditions, condition)
}

// SetPaused sets the condition Paused of an object, or removes it.
func SetPaused(conditions *[]metav1.Condition, paused bool, generation int64, now metav1.Time) {
	setWhile(paused, conditions, metav1.Condition{
		Type:               ConditionPaused,
		ObservedGeneration: generation,
		LastTransitionTime: now,
		Reason:             ReasonPaused,
		Message:            "spec.paused is true: nothing is written for this object; its pods keep running",
	})
}

// ConditionAvailable is present from the first reconcile on, as Ready is. It says whether the
// pods of an object are available, whatever template they run: during a rollout it can be True
// while Ready is False. kstatus does not read it.
const ConditionAvailable = "Available"

// NotObserved returns the availability of an object whose child of the given kind, such as
// Deployment, has no observed state yet.
func NotObserved(child string, generation int64) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: ReasonProgressing, Message: NotObservedYet(child, generation)}
}

// NotObservedYet says that the status of a child is not one of its generation.
func NotObservedYet(child string, generation int64) string {
	return fmt.Sprintf("waiting for the %s controller to observe generation %d", child, generation)
}

// NoChild returns the availability of an object that has no child of the given kind. readiness
// says why.
func NoChild(child string, readiness Readiness) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: readiness.Reason, Message: "there is no " + child + ": " + readiness.Message}
}

// SetAvailable sets the condition Available of an object of the given generation to the availability
// of its child, of which the transition time is zero if that is not known. current says
// that the availability is one of a child which was written for this generation. If it is not,
// observedGeneration stays as it is, so that "kubectl wait" continues to wait.
func SetAvailable(conditions *[]metav1.Condition, available metav1.Condition, current bool, generation int64, now metav1.Time) {
	if available.LastTransitionTime.IsZero() {
		available.LastTransitionTime = now
	}
	if existing := meta.FindStatusCondition(*conditions, ConditionAvailable); !current && existing != nil {
		generation = existing.ObservedGeneration
	} else if !current {
		generation--
	}
	available.Type, available.ObservedGeneration = ConditionAvailable, generation
	SetCondition(conditions, available)
}

// The bounds of the schemas. The API server would refuse the whole status for one value above them.
const (
	maxMessage, maxReason                   = 32768, 1024
	maxConditions, maxHistory, maxProblems  = 16, 100, 5
	maxProblemMessage, maxProblemReason     = 1024, 128
	maxContainer                            = 63
	maxScheduleName, maxScheduledTimes      = 63, 3
	maxPendingReason                        = 64
	maxChildren, maxChildKind, maxChildHash = 8, 63, 64
	maxRewritten, maxPath                   = 3, 256
)

// reason is the rule of metav1.Condition for reasons.
var reason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

const unknown = "Unknown"

// earliest and latest are the bounds of a time. JSON cannot hold the zero time, nor a year of more than four
// digits in UTC.
var earliest, latest = time.Unix(0, 0).UTC(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

func outOfRange(t metav1.Time) bool { return t.Time.Before(earliest) || t.After(latest) }

// clamp changes a status, or a part of it, to what its schema and JSON can carry. Every status passes it when
// it is read and before it is written, and every condition when it is set: the conditions, times, messages and
// numbers of children, of pods and of the stored status come from other clients, and the API server does not
// check most of them.
func clamp(v reflect.Value) {
	switch value := v.Addr().Interface().(type) {
	case *metav1.Time: // Without a value, unless it is required.
		if outOfRange(*value) {
			*value = metav1.Time{}
		}
		return
	case **metav1.Time:
		if *value != nil && outOfRange(**value) {
			*value = nil
		}
		return
	case *metav1.Condition:
		clampCondition(value)
	case *modelv1.ChildrenStatus:
		clampChildren(value)
	case *mtsrev1.EruHistory:
		value.Slot, value.Reason = nearest(value.Slot), rules.Cut(value.Reason, maxReason)
	case *mtsrev1.EruPending:
		value.Slot, value.Since = nearest(value.Slot), nearest(value.Since)
		value.Reason, value.Message = rules.Cut(cmp.Or(value.Reason, unknown), maxPendingReason), rules.Cut(value.Message, mtsrev1.MaxPendingMessage)
	case *modelv1.ScheduledReplicas:
		value.Name, value.Time = rules.Cut(value.Name, maxScheduleName), nearest(value.Time)
	case *modelv1.Problem:
		value.Reason, value.Message = rules.Cut(cmp.Or(value.Reason, unknown), maxProblemReason), rules.Cut(value.Message, maxProblemMessage)
		value.Container = rules.Cut(value.Container, maxContainer)
	default:
		clampList(value)
	}
	clampParts(v)
}

// clampList removes items from a list that is too long.
func clampList(list any) {
	switch value := list.(type) {
	case *[]metav1.Condition:
		clampConditions(value)
	case *[]mtsrev1.EruHistory:
		*value = (*value)[:min(len(*value), maxHistory)]
	case *[]modelv1.ScheduledReplicas:
		*value = (*value)[:min(len(*value), maxScheduledTimes)]
	case *[]modelv1.Problem:
		*value = (*value)[:min(len(*value), maxProblems)]
	}
}

// clampChildren removes what the controller does not write, which costs a write of a child.
func clampChildren(value *modelv1.ChildrenStatus) {
	kinds := map[string]bool{}
	value.Children = slices.DeleteFunc(value.Children, func(c modelv1.ChildStatus) bool {
		invalid := c.Kind == "" || !fits(c.Kind, maxChildKind) || !fits(c.Desired, maxChildHash) || !fits(c.Stored, maxChildHash) ||
			len(c.Rewritten) > maxRewritten || slices.ContainsFunc(c.Rewritten, func(path string) bool { return !fits(path, maxPath) })
		if invalid || kinds[c.Kind] || len(kinds) == maxChildren {
			return true
		}
		kinds[c.Kind] = true
		return false
	})
	if !fits(value.Configuration, modelv1.MaxConfiguration) {
		value.Configuration = ""
	}
}

// fits reports whether a text has at most so many bytes, also in JSON, which has no other text than UTF-8.
func fits(text string, most int) bool { return len(text) <= most && utf8.ValidString(text) }

func clampParts(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, part := range v.Fields() {
			clamp(part)
		}
	case reflect.Slice:
		for i := range v.Len() {
			clamp(v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			clamp(v.Elem())
		}
	case reflect.Int32, reflect.Int64:
		v.SetInt(max(v.Int(), 0))
	}
}

// clampConditions removes conditions of other clients from a list that these have filled.
func clampConditions(list *[]metav1.Condition) {
	for len(*list) > maxConditions {
		foreign := slices.IndexFunc(*list, func(c metav1.Condition) bool { return !slices.Contains(ownConditions, c.Type) })
		*list = slices.Delete(*list, max(foreign, 0), max(foreign, 0)+1)
	}
}

func clampCondition(c *metav1.Condition) {
	switch c.Status {
	case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
	default:
		c.Status = metav1.ConditionUnknown
	}
	if len(c.Reason) > maxReason || !reason.MatchString(c.Reason) {
		c.Reason = unknown
	}
	c.Message, c.LastTransitionTime = rules.Cut(c.Message, maxMessage), nearest(c.LastTransitionTime)
}

// nearest returns a time that is required, and therefore never without a value.
func nearest(t metav1.Time) metav1.Time {
	switch {
	case t.Time.Before(earliest):
		t.Time = earliest
	case t.After(latest):
		t.Time = latest
	}
	return t
}
