// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree draws the state of an object: its conditions, its children and their pods, the
// problems in its status, and its newest events.
package tree

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// Snapshot is an object of the five kinds with what belongs to it.
type Snapshot struct {
	// Name is the kind and the name.
	Name   string
	Object client.Object
	// Owns is that the object controls its children.
	Owns bool
	// Children are the Deployment, the DaemonSet and the Service that exist, and the children of blocks of the
	// spec, which have their kind. Those of a UnitedDeployment and an Eru are what they act on.
	Children []client.Object
	Pods     []corev1.Pod
	Events   []corev1.Event
}

// maxEvents is the number of events that are drawn.
const maxEvents = 5

// Tree returns the snapshot as lines. Ages are up to now.
func (s *Snapshot) Tree(now time.Time) *Node {
	root := &Node{Text: fmt.Sprintf("%s  %s", s.Name, State(s.Object))}
	for _, condition := range Conditions(s.Object) {
		root.Add(conditionText(condition, s.Object.GetGeneration(), now))
	}
	for _, problem := range Problems(s.Object) {
		root.Add(problemText(problem, now))
	}
	if eru, ok := s.Object.(*mtsrev1.Eru); ok {
		addRuns(root, eru)
	}
	for _, child := range s.Children {
		node := root.Add(s.childText(child))
		switch child.(type) {
		case *appsv1.Deployment, *appsv1.DaemonSet:
			for i := range s.Pods {
				node.Add(podText(&s.Pods[i], now))
			}
		}
	}
	s.addEvents(root, now)
	return root
}

func age(since, now time.Time) string { return duration.HumanDuration(now.Sub(since)) }

// Conditions returns the conditions of an object of one of the five kinds.
func Conditions(obj client.Object) []metav1.Condition {
	if known, ok := obj.(interface{ GetConditions() []metav1.Condition }); ok {
		return known.GetConditions()
	}
	return nil
}

// The states of an object in its current generation. One that is Stalled needs a change to become Ready.
const (
	Ready    = "Ready"
	Stalled  = "Stalled"
	NotReady = "not ready"
	Unknown  = "not reconciled yet"
)

// State returns the state of an object.
func State(obj client.Object) string {
	ready, stalled := current(obj, status.ConditionReady), current(obj, status.ConditionStalled)
	switch {
	case ready == nil:
		return Unknown
	case ready.Status == metav1.ConditionTrue:
		return Ready
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		return Stalled
	}
	return NotReady
}

// current returns a condition if it is about the current generation.
func current(obj client.Object, name string) *metav1.Condition {
	condition := meta.FindStatusCondition(Conditions(obj), name)
	if condition == nil || condition.ObservedGeneration < obj.GetGeneration() {
		return nil
	}
	return condition
}

// Message returns the reason and the message of the condition that says most.
func Message(obj client.Object) string {
	for _, name := range []string{status.ConditionStalled, status.ConditionReady} {
		if c := current(obj, name); c != nil {
			return strings.TrimSuffix(c.Reason+": "+c.Message, ": ")
		}
	}
	return "waiting for the controller to reconcile the object"
}

func conditionText(c metav1.Condition, generation int64, now time.Time) string {
	text := fmt.Sprintf("%s=%s  %s (%s)", c.Type, c.Status, c.Reason, age(c.LastTransitionTime.Time, now))
	if c.Message != "" {
		text += ": " + c.Message
	}
	if c.ObservedGeneration < generation {
		text += fmt.Sprintf("  [of generation %d; the object has %d]", c.ObservedGeneration, generation)
	}
	return text
}

// Problems returns the problems in the status of an object.
func Problems(obj client.Object) []modelv1.Problem {
	switch obj := obj.(type) {
	case *modelv1.ModelBox:
		return obj.Status.Problems
	case *appv1.App:
		return obj.Status.Problems
	case *mydomainv1beta1.Genericdaemon:
		return obj.Status.Problems
	}
	return nil
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
	if p.Message != "" {
		text += ": " + p.Message
	}
	return text
}

func addRuns(root *Node, eru *mtsrev1.Eru) {
	if next := eru.Status.NextScheduleTime; next != nil {
		root.Add(fmt.Sprintf("next run: %s", next.UTC().Format(time.RFC3339)))
	}
	for _, entry := range eru.Status.History[:min(maxEvents, len(eru.Status.History))] {
		root.Add(strings.TrimSpace(fmt.Sprintf("run of %s: %s %s", entry.Slot.UTC().Format(time.RFC3339), entry.Result, entry.Reason)))
	}
}

func (s *Snapshot) childText(child client.Object) string {
	text := ""
	switch child := child.(type) {
	case *appsv1.Deployment:
		text = fmt.Sprintf("Deployment/%s  %d/%d ready, %d updated, %d available",
			child.Name, child.Status.ReadyReplicas, ptr.Deref(child.Spec.Replicas, 1), child.Status.UpdatedReplicas, child.Status.AvailableReplicas)
	case *appsv1.DaemonSet:
		text = fmt.Sprintf("DaemonSet/%s  %d/%d ready, %d updated, %d available",
			child.Name, child.Status.NumberReady, child.Status.DesiredNumberScheduled, child.Status.UpdatedNumberScheduled, child.Status.NumberAvailable)
	case *corev1.Service:
		text = fmt.Sprintf("Service/%s  %s %s  %s", child.Name, child.Spec.Type, child.Spec.ClusterIP, portsText(child.Spec.Ports))
	default:
		text = child.GetObjectKind().GroupVersionKind().Kind + "/" + child.GetName()
	}
	if s.Owns && !metav1.IsControlledBy(child, s.Object) {
		text += "  [not controlled by the object]"
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
func (s *Snapshot) addEvents(root *Node, now time.Time) {
	events := slices.SortedStableFunc(slices.Values(s.Events), func(a, b corev1.Event) int {
		return cmp.Compare(timeOf(&a).UnixNano(), timeOf(&b).UnixNano())
	})
	events = events[max(0, len(events)-maxEvents):]
	if len(events) == 0 {
		return
	}
	node := root.Add("events")
	for i := range events {
		e := &events[i]
		node.Add(fmt.Sprintf("%s ago  %s %s of %s: %s", age(timeOf(e), now), e.Type, e.Reason, e.InvolvedObject.Kind, e.Message))
	}
}

// timeOf returns when an event was seen last.
func timeOf(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// Node is a line with others below it.
type Node struct {
	Text string
	Sub  []*Node
}

// Add adds a line below the node.
func (n *Node) Add(text string) *Node {
	n.Sub = append(n.Sub, &Node{Text: text})
	return n.Sub[len(n.Sub)-1]
}

// Write draws a node and those below it.
func (n *Node) Write(w io.Writer) error {
	var b strings.Builder
	b.WriteString(n.Text + "\n")
	n.draw(&b, "")
	_, err := io.WriteString(w, b.String())
	return err
}

func (n *Node) draw(b *strings.Builder, indent string) {
	for i, sub := range n.Sub {
		branch, below := "├── ", "│   "
		if i == len(n.Sub)-1 {
			branch, below = "└── ", "    "
		}
		b.WriteString(indent + branch + sub.Text + "\n")
		sub.draw(b, indent+below)
	}
}
