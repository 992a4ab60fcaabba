// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list

const (
	// maxListed is how many pods, or nodes, one look reads.
	maxListed = 500
	// listsPerSecond and listsAtOnce bound the lists for all objects of a kind. If a registry is
	// down, thousands of objects are not ready at the same time; those that come later wait.
	listsPerSecond, listsAtOnce = 10, 100
	// maxNote bounds an error in the message of a condition.
	maxNote = 512
)

// Looker finds out why objects of one kind are not ready. It lists the pods of an object that
// has been not ready for more than 15 s, at most every 15 s (5 s while a model is being fetched, in
// the first minute), and at most every 5 minutes while their problems stay the same. Nil finds
// nothing.
type Looker struct {
	// Reader reads from the API server: a cache of pods would cost more than all else.
	Reader client.Reader
	Clock  clock.PassiveClock
	// WithoutNodes is true if the process has no right to list nodes.
	WithoutNodes bool

	mu        sync.Mutex
	schedules map[types.NamespacedName]*schedule
	limiter   *rate.Limiter
}

// NewLooker returns a Looker that lists by a reader of the API server.
func NewLooker(reader client.Reader, clk clock.PassiveClock) *Looker {
	return &Looker{
		Reader: reader, Clock: clk,
		schedules: map[types.NamespacedName]*schedule{}, limiter: rate.NewLimiter(listsPerSecond, listsAtOnce),
	}
}

// Subject is an object that may not be ready, with its workload and what is in its status.
type Subject struct {
	Owner    client.Object
	Workload Workload
	// Conditions, Problems and MissingNodes are those of the status as it is stored.
	Conditions   []metav1.Condition
	Problems     []modelv1.Problem
	MissingNodes []string
}

// Explain returns the readiness of an object whose workload has been applied, with what Look
// found if the object is not ready. skip is true if its pods are not the reason for that.
func (l *Looker) Explain(ctx context.Context, s *Subject, readiness status.Readiness, skip bool) (status.Readiness, Found, time.Duration) {
	switch {
	case readiness.Ready:
		l.Forget(client.ObjectKeyFromObject(s.Owner))
	case skip:
		l.Skip(s.Owner)
	default:
		found, again := l.Look(ctx, s)
		return found.Describe(readiness), found, again
	}
	return readiness, Found{}, 0
}

// Look returns why an object that is not ready is not, and after which time it is to be
// reconciled again for it, 0 for never. Between two lists the result is that of the last one,
// so that a reconcile for another reason writes no other status. A list that fails changes
// nothing, but the message says so if it is forbidden.
func (l *Looker) Look(ctx context.Context, s *Subject) (Found, time.Duration) {
	if l == nil {
		return Found{}, 0
	}
	observed := s.Workload.IsObserved()
	if !observed && len(s.Problems) == 0 {
		return Found{}, 0 // Its next status is an event, so nothing needs to be remembered.
	}
	now := l.Clock.Now()
	plan := l.scheduleOf(s, now)
	plan.update(s, now)
	switch {
	case !observed:
		return s.last(plan), 0
	case now.Before(plan.due):
	case !l.limiter.AllowN(now, 1):
		plan.due = now.Add(firstPause)
	default:
		found := l.look(ctx, s, plan, now)
		return found, plan.due.Sub(now)
	}
	return s.last(plan), plan.due.Sub(now)
}

// look lists the pods of an object.
func (l *Looker) look(ctx context.Context, s *Subject, plan *schedule, now time.Time) Found {
	found, err := l.list(ctx, s, now)
	if err != nil {
		log.FromContext(ctx).Info("Listing the pods of an object that is not ready failed", "error", err)
		found = s.last(plan)
		if !apierrors.IsForbidden(err) {
			plan.postpone(now)
			return found
		}
		found.note = rules.Cut("why is not known, because its pods may not be listed: "+oneLine(err.Error()), maxNote)
	} else if plan.kept {
		found.settle(s.Problems)
	}
	plan.record(&found, now)
	return found
}

// list returns what the pods, and for a DaemonSet the nodes, say.
func (l *Looker) list(ctx context.Context, s *Subject, now time.Time) (Found, error) {
	selector, err := metav1.LabelSelectorAsSelector(s.Workload.selector())
	if err != nil {
		return Found{}, fmt.Errorf("the selector of the workload: %w", err)
	}
	var pods corev1.PodList
	err = l.Reader.List(ctx, &pods, client.InNamespace(s.Owner.GetNamespace()), client.MatchingLabelsSelector{Selector: selector}, client.Limit(maxListed))
	if err != nil {
		return Found{}, fmt.Errorf("listing pods: %w", err)
	}
	var found Found
	found.Problems, found.Human = Of(s.Workload, pods.Items, now)
	if pods.Continue != "" {
		found.note = fmt.Sprintf("only %d of its pods were read", len(pods.Items))
	}
	l.addNodes(ctx, &found, s.Workload, &pods)
	return found, nil
}

// addNodes adds the nodes without an available daemon. Those that have a pod are known from
// it; nodes are listed only if some have none.
func (l *Looker) addNodes(ctx context.Context, found *Found, w Workload, pods *corev1.PodList) {
	if w.daemonSet == nil {
		return
	}
	nodes := w.nodesOf(pods.Items)
	var others corev1.NodeList
	if int(w.daemonSet.Status.DesiredNumberScheduled) > len(nodes.all) && pods.Continue == "" {
		if note := l.listNodes(ctx, &others); note != "" {
			found.note = note
		}
	}
	found.MissingNodes = nodes.missing(w.daemonSet, others.Items)
}

// listNodes lists nodes, or says why not.
func (l *Looker) listNodes(ctx context.Context, into *corev1.NodeList) (note string) {
	if l.WithoutNodes {
		return "which nodes have no pod is not known, because the controller is limited to namespaces and may not list nodes"
	}
	err := l.Reader.List(ctx, into, client.Limit(maxListed))
	switch {
	case apierrors.IsForbidden(err):
		return rules.Cut("which nodes have no pod is not known, because nodes may not be listed: "+oneLine(err.Error()), maxNote)
	case err != nil:
		log.FromContext(ctx).Info("Listing nodes failed", "error", err)
	case into.Continue != "":
		return fmt.Sprintf("only %d nodes were read", len(into.Items))
	}
	return ""
}

// last returns the result of the last list, which is in the status.
func (s *Subject) last(plan *schedule) Found {
	if !plan.kept {
		return Found{}
	}
	return Found{Problems: s.Problems, MissingNodes: s.MissingNodes, Human: plan.human && len(s.Problems) > 0, note: plan.note}
}

func (l *Looker) scheduleOf(s *Subject, now time.Time) *schedule {
	name := client.ObjectKeyFromObject(s.Owner)
	l.mu.Lock()
	defer l.mu.Unlock()
	plan := l.schedules[name]
	if plan == nil || plan.uid != s.Owner.GetUID() {
		plan = newSchedule(s, now)
		l.schedules[name] = plan
	}
	return plan
}

// Skip is called for an object that is not ready for another reason than its pods. Its status
// has no problems then; when its pods matter again, they are listed soon.
func (l *Looker) Skip(owner client.Object) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if plan := l.schedules[client.ObjectKeyFromObject(owner)]; plan != nil {
		plan.kept, plan.note = false, ""
		plan.advance(l.Clock.Now())
	}
}

// Forget is called for an object that is ready, or that was deleted.
func (l *Looker) Forget(name types.NamespacedName) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.schedules, name)
}
