// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	domain "github.com/modelbox-operator/modelbox-operator/kinds"
)

// maxEvents is the number of events that are drawn, and of runs of an Eru.
const maxEvents = 5

// show draws the state of the object: its conditions, the problems in its status, its children and
// their pods, and its newest events.
func (t *target) show(ctx context.Context) error {
	obj, now := t.kind.New(), t.Clock.Now()
	if err := t.client.Get(ctx, t.key, obj); err != nil {
		return err
	}
	root := &node{text: fmt.Sprintf("%s/%s  %s", t.kind.GVK.Kind, obj.GetName(), stateOf(obj))}
	root.addStatus(obj, now)
	children, err := t.children(ctx, obj, root)
	if err != nil {
		return err
	}
	for _, child := range children {
		text := childText(child)
		if t.kind.HasPods() && !metav1.IsControlledBy(child, obj) {
			text += "  [not controlled by the object]"
		}
		at := root.add(text)
		pods, err := t.pods(ctx, child)
		if err := at.unlessForbidden(err); err != nil {
			return err
		}
		for i := range pods {
			at.add(podText(&pods[i], now))
		}
	}
	events := &corev1.EventList{}
	if err := t.client.List(ctx, events, client.InNamespace(t.key.Namespace), client.MatchingFields{"involvedObject.name": t.key.Name}); root.unlessForbidden(err) != nil {
		return fmt.Errorf("listing events: %w", err)
	}
	root.addEvents(events.Items, now)
	fmt.Fprintln(t.Out, root.text)
	root.write(t.Out, "")
	return nil
}

// unlessForbidden returns an error, or adds it to the node if the user may not read something.
func (n *node) unlessForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		n.add("not visible: " + err.Error())
		return nil
	}
	return err
}

// children returns the children of an object that exist. What may not be read is added to a node;
// of the children of blocks it is left out.
func (t *target) children(ctx context.Context, obj client.Object, root *node) ([]client.Object, error) {
	var out []client.Object
	for i, child := range t.candidates(obj) {
		kind := child.GetObjectKind().GroupVersionKind()
		err := t.client.Get(ctx, client.ObjectKeyFromObject(child), child)
		if i > 1 && (apierrors.IsForbidden(err) || meta.IsNoMatchError(err)) {
			continue // Not every user may read those of blocks, nor does each cluster have their kinds.
		}
		if root.unlessForbidden(client.IgnoreNotFound(err)) != nil {
			return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, child.GetName(), err)
		}
		if err == nil {
			out = append(out, child)
		}
	}
	return out, nil
}

// candidates returns empty objects with the names of an object's children: those that run pods, the
// Service, and those of blocks.
func (t *target) candidates(obj client.Object) []domain.Object {
	out := t.kind.ChildKinds()
	for _, child := range out {
		child.SetNamespace(t.key.Namespace)
		if child.SetName(t.kind.WorkloadOf(obj)); t.kind.HasPods() {
			child.SetName(domain.ChildName(obj, child))
		}
	}
	return out
}

// pods returns the pods of a child, none if it has no pod template.
func (t *target) pods(ctx context.Context, child client.Object) ([]corev1.Pod, error) {
	var labels *metav1.LabelSelector
	switch child := child.(type) {
	case *appsv1.Deployment:
		labels = child.Spec.Selector
	case *appsv1.DaemonSet:
		labels = child.Spec.Selector
	default:
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(labels)
	if err != nil {
		return nil, err
	}
	pods := &corev1.PodList{}
	if err := t.client.List(ctx, pods, client.InNamespace(t.key.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	return pods.Items, nil
}

// The states in which nothing is awaited. An object that is stalled needs a change to become ready.
const (
	stateReady   = "Ready"
	stateStalled = "Stalled"
)

// stateOf returns the state of an object in its current generation.
func stateOf(obj client.Object) string {
	isReady, isStalled := current(obj, api.ConditionReady), current(obj, api.ConditionStalled)
	switch {
	case isReady == nil:
		return "not reconciled yet"
	case isReady.Status == metav1.ConditionTrue:
		return stateReady
	case isStalled != nil && isStalled.Status == metav1.ConditionTrue:
		return stateStalled
	}
	return "not ready"
}

func conditions(obj client.Object) []metav1.Condition {
	return obj.(interface{ GetConditions() []metav1.Condition }).GetConditions() // Each of the five kinds has it.
}

// current returns a condition if it is about the current generation.
func current(obj client.Object, name string) *metav1.Condition {
	condition := meta.FindStatusCondition(conditions(obj), name)
	if condition == nil || condition.ObservedGeneration < obj.GetGeneration() {
		return nil
	}
	return condition
}

// message returns the reason and the message of the condition that says most.
func message(obj client.Object) string {
	if c := cmp.Or(current(obj, api.ConditionStalled), current(obj, api.ConditionReady)); c != nil {
		return strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
	}
	return "waiting for the controller to reconcile the object"
}

// node is a line with others below it.
type node struct {
	text string
	sub  []*node
}

// add adds a line below the node.
func (n *node) add(text string) *node {
	n.sub = append(n.sub, &node{text: text})
	return n.sub[len(n.sub)-1]
}

// write draws what is below a node.
func (n *node) write(w io.Writer, indent string) {
	for i, sub := range n.sub {
		branch, below := "├── ", "│   "
		if i == len(n.sub)-1 {
			branch, below = "└── ", "    "
		}
		fmt.Fprintln(w, indent+branch+sub.text)
		sub.write(w, indent+below)
	}
}

func age(since, now time.Time) string { return duration.HumanDuration(now.Sub(since)) }

// addStatus adds the conditions, the problems and the runs in the status of an object.
func (n *node) addStatus(obj client.Object, now time.Time) {
	for _, c := range conditions(obj) {
		text := strings.TrimSuffix(fmt.Sprintf("%s=%s  %s (%s): %s", c.Type, c.Status, c.Reason, age(c.LastTransitionTime.Time, now), c.Message), ": ")
		if c.ObservedGeneration < obj.GetGeneration() {
			text += fmt.Sprintf("  [of generation %d; the object has %d]", c.ObservedGeneration, obj.GetGeneration())
		}
		n.add(text)
	}
	var problems []modelv1.Problem
	switch obj := obj.(type) {
	case *modelv1.ModelBox:
		problems = obj.Status.Problems
	case *appv1.App:
		problems = obj.Status.Problems
	case *mydomainv1beta1.Genericdaemon:
		problems = obj.Status.Problems
	case *mtsrev1.Eru:
		if next := obj.Status.NextScheduleTime; next != nil {
			n.add("next run: " + next.UTC().Format(time.RFC3339))
		}
		for _, entry := range obj.Status.History[:min(maxEvents, len(obj.Status.History))] {
			n.add(strings.TrimSpace(fmt.Sprintf("run of %s: %s %s", entry.Slot.UTC().Format(time.RFC3339), entry.Result, entry.Reason)))
		}
	}
	for _, problem := range problems {
		n.add(problemText(problem, now))
	}
}

func problemText(p modelv1.Problem, now time.Time) string {
	text := "problem: " + p.Reason
	if p.Container != "" {
		text += " of container " + p.Container
	}
	if p.Count > 0 {
		text += fmt.Sprintf(" in %d pods", p.Count)
	}
	if !p.Since.IsZero() {
		text += " for " + age(p.Since.Time, now)
	}
	return strings.TrimSuffix(text+": "+p.Message, ": ")
}

func childText(child client.Object) string {
	text := domain.KindOf(child) + "/" + child.GetName()
	const replicas = "  %d/%d ready, %d updated, %d available"
	switch child := child.(type) {
	case *appsv1.Deployment:
		s := child.Status
		text += fmt.Sprintf(replicas, s.ReadyReplicas, ptr.Deref(child.Spec.Replicas, 1), s.UpdatedReplicas, s.AvailableReplicas)
	case *appsv1.DaemonSet:
		s := child.Status
		text += fmt.Sprintf(replicas, s.NumberReady, s.DesiredNumberScheduled, s.UpdatedNumberScheduled, s.NumberAvailable)
	case *corev1.Service:
		text += fmt.Sprintf("  %s %s  %s", child.Spec.Type, child.Spec.ClusterIP, portsText(child.Spec.Ports))
	}
	return text
}

func portsText(ports []corev1.ServicePort) string {
	out := make([]string, 0, len(ports))
	for _, port := range ports {
		text := fmt.Sprintf("%d/%s", port.Port, port.Protocol)
		if port.NodePort != 0 {
			text = fmt.Sprintf("%d:%d/%s", port.Port, port.NodePort, port.Protocol)
		}
		out = append(out, text)
	}
	return strings.Join(out, ",")
}

// podText describes a pod by what is worst in it.
func podText(pod *corev1.Pod, now time.Time) string {
	ready, restarts, reason := 0, int32(0), cmp.Or(pod.Status.Reason, string(pod.Status.Phase))
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		restarts += status.RestartCount
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing" {
			reason = waiting.Reason
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Ready {
			ready++
		}
	}
	if pod.DeletionTimestamp != nil {
		reason = "Terminating"
	}
	text := fmt.Sprintf("Pod/%s  %s  %d/%d ready, %d restarts, %s", pod.Name, reason, ready, len(pod.Spec.Containers), restarts, age(pod.CreationTimestamp.Time, now))
	if pod.Spec.NodeName != "" {
		text += " on " + pod.Spec.NodeName
	}
	return text
}

// addEvents adds the newest events, the oldest of them first.
func (n *node) addEvents(events []corev1.Event, now time.Time) {
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return timeOf(&a).Compare(timeOf(&b)) })
	if len(events) == 0 {
		return
	}
	at := n.add("events")
	for _, e := range events[max(0, len(events)-maxEvents):] {
		at.add(fmt.Sprintf("%s ago  %s %s of %s: %s", age(timeOf(&e), now), e.Type, e.Reason, e.InvolvedObject.Kind, e.Message))
	}
}

// timeOf returns when an event was seen last.
func timeOf(e *corev1.Event) time.Time {
	series := ptr.Deref(e.Series, corev1.EventSeries{})
	return cmp.Or(series.LastObservedTime.Time, e.LastTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time)
}
