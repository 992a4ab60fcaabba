// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/configuration"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// configured is what is found out of the configuration of an object, for its status.
type configured struct {
	// note says what does not exist or may not be read, waiting which rollout waits, and for what,
	// with the reason of Ready.
	note, waiting, reason string
	// again is after which time to look again, 0 for never.
	again time.Duration

	// value is the annotation to write, live the one that the pod template has, and template the
	// hash of the rest of it.
	value, live, template string
}

// configure makes the annotation of the configuration a part of the desired pod template, if the
// object has spec.restartOnChange. The live annotation is the only state: while a rollout waits,
// the desired one is the live one. A pod template that is written for another reason has the data
// of now, so that it needs no second rollout. unread is what cannot be read, which keeps its line;
// with undecided, the desired pod template is not known.
func (r *Reconciler) configure(ctx context.Context, s *State) (unread, undecided error) {
	owner := client.ObjectKeyFromObject(s.Owner)
	if r.Configuration == nil || s.RestartOnChange != modelv1.RestartOnChangeReferenced {
		r.Configuration.Forget(owner)
		r.Queue.Remove(r.subject(owner))
		return nil, nil
	}
	template := kinds.PodTemplate(s.Pods.Desired)
	hash, err := apply.Hash(template)
	if err != nil {
		return nil, err
	}
	live, err := r.liveConfiguration(ctx, s)
	if err != nil {
		return nil, err
	}
	refs, uid := workload.References(template), s.Owner.GetUID()
	anew, err := r.isAnew(ctx, s, hash)
	if err != nil {
		return nil, err
	}
	observed, unread := r.Configuration.Observe(ctx, owner, refs, anew && !s.Paused)
	s.configured = configured{note: observed.Note, again: observed.Again, live: live, template: hash}
	if wait := r.untilApplied(s); wait > 0 && len(observed.Missing) > 0 {
		s.configured.again = wait
		return unread, status.NewReconciling(status.ReasonProgressing, "waiting a moment for what the pods refer to: "+observed.Note)
	}
	if anew {
		r.Queue.Remove(r.subject(owner))
		s.configured.value = observed.Digests.Anew(uid, refs, live, observed.Unread)
	} else {
		s.configured.value, err = r.holdConfiguration(ctx, s, refs, &observed)
		unread = errors.Join(unread, err)
	}
	if s.Pods.Exists() {
		s.Pods.Expect = append(s.Pods.Expect, apply.Generation(s.Pods.Live.GetGeneration()))
	}
	setConfiguration(template, s.configured.value)
	return unread, nil
}

// isAnew reports whether the pod template, without its configuration, is still to be written.
func (r *Reconciler) isAnew(ctx context.Context, s *State, hash string) (bool, error) {
	if s.Pods.Exists() && (s.Status.Template == "" || s.Status.Template == hash) {
		return false, nil
	}
	written, err := r.Writer.HasTemplate(ctx, s.owner(), s.Pods)
	return !written, err
}

// applies is how long the objects of one file may take to be created, one after the other.
const applies = 3 * time.Second

// untilApplied returns how long the first pod template of a new owner waits for what it refers to
// and does not exist yet: the file that has the owner may have that as well, and a pod template
// without its data would be rolled out again at once.
func (r *Reconciler) untilApplied(s *State) time.Duration {
	age := r.Clock.Since(s.Owner.GetCreationTimestamp().Time)
	if s.Pods.Exists() || age < 0 {
		return 0
	}
	return applies - age
}

// recordConfiguration sets what status says of the configuration in the child that runs the pods.
func (s *State) recordConfiguration() {
	if s.Pods.Err != nil {
		return // Nothing is known of it.
	}
	value, template := s.configured.live, s.Status.Template
	if s.Pods.Settled() || s.configured.template == "" {
		value, template = s.configured.value, s.configured.template
	}
	if len(value) > modelv1.MaxConfiguration {
		value = "" // It is read from the child each time.
	}
	s.Status.Configuration, s.Status.Template = value, template
}

// liveConfiguration returns the annotation that the pod template of the child has now: from status
// if the cache, which has its hash, says that this is it, and otherwise from the API server.
func (r *Reconciler) liveConfiguration(ctx context.Context, s *State) (string, error) {
	if !s.Pods.Exists() {
		return "", nil
	}
	held := kinds.PodTemplate(s.Pods.Live).Annotations[api.AnnotationConfiguration]
	if held == "" {
		return "", nil
	}
	if recorded := s.Status.Configuration; cache.Holds(held, recorded) {
		return recorded, nil
	}
	live := kinds.NewOf(s.Pods.Live)
	if err := r.Writer.Live.Get(ctx, client.ObjectKeyFromObject(s.Owner), live); err != nil {
		return "", fmt.Errorf("reading the configuration in the pod template of %q: %w", s.Owner.GetName(), err)
	}
	return kinds.PodTemplate(live).Annotations[api.AnnotationConfiguration], nil
}

// holdConfiguration returns the annotation to write: that of the live one which has nothing new, while the
// rollout of what has changed has to wait. What differs is read just before it is written.
func (r *Reconciler) holdConfiguration(ctx context.Context, s *State, refs []workload.Reference, observed *configuration.Observed) (string, error) {
	owner, uid, live := client.ObjectKeyFromObject(s.Owner), s.Owner.GetUID(), s.configured.live
	held := observed.Digests.Missing(live).Annotation(uid, refs, live)
	value := observed.Digests.Annotation(uid, refs, live)
	if value == held {
		r.Queue.Remove(r.subject(owner))
		return held, nil
	}
	w, err := r.waits(ctx, s)
	if err != nil {
		return held, err
	}
	if w.reason != "" {
		changed := configuration.Changed(held, value)
		s.configured.reason = w.reason
		s.configured.waiting = fmt.Sprintf("rollout of changed %s is on hold: %s", strings.Join(changed[:min(len(changed), 3)], ", "), w.cause)
		s.configured.again = trigger.Sooner(s.configured.again, w.again)
		return held, nil
	}
	if len(observed.Read) == len(refs) {
		return value, nil
	}
	now, err := r.Configuration.Observe(ctx, owner, refs, true)
	if err != nil {
		return held, err
	}
	return now.Digests.Annotation(uid, refs, live), nil
}

// setConfiguration sets the annotation of a pod template, which without references has none.
func setConfiguration(template *corev1.PodTemplateSpec, value string) {
	template.Annotations = maps.Clone(template.Annotations)
	if delete(template.Annotations, api.AnnotationConfiguration); value != "" {
		metav1.SetMetaDataAnnotation(&template.ObjectMeta, api.AnnotationConfiguration, value)
	}
}
