// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/configuration"
	"github.com/modelbox-operator/modelbox-operator/controller/freeze"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/kinds/podtemplate"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
)

// The reasons of Ready while changed configuration is not rolled out.
const (
	// reasonWaitingForWindow means that no window of the spec is open.
	reasonWaitingForWindow = "WaitingForWindow"
	// reasonWaitingForTurn means that other objects have their turn first.
	reasonWaitingForTurn = "WaitingForTurn"
)

// configured is what is found out of the configuration of an object, for its status.
type configured struct {
	// note says what does not exist or may not be read, waiting which rollout waits, and for what, with the reason of Ready.
	note, waiting, reason string
	// again is after which time to look again, 0 for never.
	again time.Duration
}

// configure makes the annotation of the configuration a part of the desired pod template, if the object asks for it.
// The live annotation is the only state: while a rollout waits, the desired one is the live one.
func (r *Reconciler) configure(ctx context.Context, c *Children) error {
	owner := client.ObjectKeyFromObject(c.Owner)
	if r.Configuration == nil || c.RestartOnChange != modelv1.RestartOnChangeReferenced {
		r.Configuration.Forget(owner)
		r.Turns.Leave(r.subject(owner))
		return nil
	}
	refs := podtemplate.References(templateOf(c.Pods.Desired))
	observed, err := r.Configuration.Observe(ctx, owner, refs)
	if err != nil {
		return err
	}
	c.configured = configured{note: observed.Note, again: observed.Again}
	set := func(live string, hold bool) string {
		value := observed.Digests.Annotation(c.Owner.GetUID(), refs, live, hold)
		setConfiguration(templateOf(c.Pods.Desired), value)
		return value
	}
	set("", false) // For a child that does not exist.
	keep := c.Pods.Keep
	c.Pods.Keep = func() error {
		if keep != nil {
			if err := keep(); err != nil {
				return err
			}
		}
		live := templateOf(c.Pods.Live).Annotations[api.AnnotationConfiguration]
		held := set(live, true)
		if value := set(live, false); value != held {
			return r.holdIfDue(ctx, c, configuration.Changed(held, value), func() { set(live, true) })
		}
		r.Turns.Leave(r.subject(owner))
		return nil
	}
	return nil
}

// wait is why a rollout of changed configuration does not happen now: the reason of Ready, a cause for its message, and
// after which time to look again, 0 for never. The zero wait is none.
type wait struct {
	reason, cause string
	again         time.Duration
}

// holdIfDue calls hold if the rollout of what has changed has to wait.
func (r *Reconciler) holdIfDue(ctx context.Context, c *Children, changed []string, hold func()) error {
	w, err := r.waits(ctx, c)
	if err != nil || w.reason == "" {
		return err
	}
	hold()
	c.configured.reason = w.reason
	c.configured.waiting = fmt.Sprintf("the rollout of changed configuration (%s) waits: %s", strings.Join(changed[:min(len(changed), 3)], ", "), w.cause)
	c.configured.again = trigger.Sooner(c.configured.again, w.again)
	return nil
}

// waits returns what a rollout waits for: a window, then the end of a freeze, and then its turn, which it takes last and only
// if it is going to be written.
func (r *Reconciler) waits(ctx context.Context, c *Children) (w wait, err error) {
	owner := r.subject(client.ObjectKeyFromObject(c.Owner))
	if w = closed(c.Windows, r.Clock.Now()); w.reason == "" {
		w, err = r.frozen(ctx, owner.Namespace)
	}
	if err != nil || w.reason != "" || c.Paused {
		r.Turns.Leave(owner)
		return w, err
	}
	position, again := r.Turns.Take(owner)
	if position == 0 {
		return wait{}, nil
	}
	cause := fmt.Sprintf("it is number %d in the queue of the controller, which begins %d in a minute", position, r.Turns.PerMinute)
	return wait{reasonWaitingForTurn, cause, min(again, trigger.Longest)}, nil
}

// subject returns an owner as one that waits for its turn.
func (r *Reconciler) subject(owner types.NamespacedName) configuration.Subject {
	return configuration.Subject{Kind: r.kind, NamespacedName: owner}
}

// closed returns the wait for the next window, which is none while one is open, or without windows. With windows that
// admission would refuse, when a rollout may happen is not known, so it waits for a change of the spec. It is pure.
func closed(spec modelv1.Windows, now time.Time) wait {
	parsed, err := windows.Parse(spec)
	if err != nil || len(windows.Validate(nil, spec)) > 0 {
		return wait{reason: reasonWaitingForWindow, cause: "spec.windows or spec.skipDates is invalid"}
	}
	if parsed.Open(now) {
		return wait{}
	}
	opens, ok := parsed.Opens(now)
	if !ok {
		return wait{reason: reasonWaitingForWindow, cause: "no window of spec.windows opens"}
	}
	return wait{reasonWaitingForWindow, "the next window opens at " + opens.Format(time.RFC3339), trigger.Until(opens, now)}
}

// frozen returns the wait for the end of the freeze of a namespace. It sends one request.
func (r *Reconciler) frozen(ctx context.Context, namespace string) (wait, error) {
	reason, frozen, err := r.Freeze.Frozen(ctx, namespace)
	switch {
	case apierrors.IsForbidden(err):
		reason = err.Error()
	case err != nil:
		return wait{}, err
	case !frozen:
		return wait{}, nil
	}
	return wait{status.ReasonFrozen, fmt.Sprintf("namespace %s is frozen (%s)", namespace, reason), freeze.Again}, nil
}

// setConfiguration sets the annotation of a pod template, which without references has none.
func setConfiguration(template *corev1.PodTemplateSpec, value string) {
	template.Annotations = maps.Clone(template.Annotations)
	if delete(template.Annotations, api.AnnotationConfiguration); value != "" {
		metav1.SetMetaDataAnnotation(&template.ObjectMeta, api.AnnotationConfiguration, value)
	}
}

// templateOf returns the pod template of a child.
func templateOf(child client.Object) *corev1.PodTemplateSpec {
	if daemonSet, ok := child.(*appsv1.DaemonSet); ok {
		return &daemonSet.Spec.Template
	}
	return &child.(*appsv1.Deployment).Spec.Template
}
