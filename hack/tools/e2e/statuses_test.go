// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// state is an object in one state.
type state struct {
	// Name is the name of a test: the kind and what the state is.
	Name   string
	Object *unstructured.Unstructured
	// Ready and Reason are those of the condition Ready, empty if there is none.
	Ready  metav1.ConditionStatus
	Reason string
	// ArgoCD is the health in Argo CD, and Message is its message.
	ArgoCD, Message string
	// Flux is the status that kstatus computes.
	Flux string
}

// generation is that of all objects, and before is an earlier one.
const (
	generation = 3
	before     = 2
)

// The messages of the health in Argo CD that are not those of a condition.
const (
	notReconciled = "the controller has not reconciled the current spec yet"
	notReported   = "the controller has not reported the condition Ready yet"
	beingDeleted  = "the object is being deleted"
)

// kindsOf returns the kinds of this project, by their names.
func kindsOf(t *testing.T) map[string]schema.GroupVersionKind {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	out := map[string]schema.GroupVersionKind{}
	for gvk := range scheme.AllKnownTypes() {
		// Beside each kind a group holds its list and the options of requests.
		if gvk.Group != "" && scheme.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind+"List")) {
			out[gvk.Kind] = gvk
		}
	}
	return out
}

// statuses returns each state of each kind that can be in it.
func statuses(t *testing.T) []state {
	t.Helper()
	var out []state
	for kind, gvk := range kindsOf(t) {
		for i := range reported {
			if r := &reported[i]; r.of(kind) {
				out = append(out, r.state(gvk))
			}
		}
		for i := range others {
			out = append(out, others[i].state(gvk))
		}
	}
	return out
}

// conditions returns the conditions that the controller sets in an object of a generation.
func (r *report) conditions(generation int64) []metav1.Condition {
	var out []metav1.Condition
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	r.SetConditions(&out, generation, at)
	status.SetPaused(&out, r.paused, generation, at)
	// kstatus and the health in Argo CD must not read it.
	status.SetAvailable(&out, status.NotObserved("Deployment", generation), true, generation, at)
	return out
}

// state returns an object of a kind with the conditions of a report.
func (r *report) state(gvk schema.GroupVersionKind) state {
	ready := metav1.ConditionFalse
	if r.Ready {
		ready = metav1.ConditionTrue
	}
	message := r.Message
	if r.paused && !r.Stalled {
		message = "spec.paused is true: nothing is written for this object; its pods keep running"
	}
	name := gvk.Kind + " " + r.Reason
	if r.paused {
		name += ", paused"
	}
	return state{
		Name: name, Ready: ready, Reason: r.Reason, ArgoCD: r.argocd, Message: message, Flux: r.flux,
		Object: objectOf(gvk, map[string]any{"observedGeneration": int64(generation), "conditions": encoded(r.conditions(generation))}),
	}
}

// encoded returns conditions as they are in JSON.
func encoded(conditions []metav1.Condition) []any {
	out := make([]any, 0, len(conditions))
	for i := range conditions {
		condition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err != nil {
			panic(err) // A condition has strings and numbers only.
		}
		out = append(out, condition)
	}
	return out
}

func (o *other) state(gvk schema.GroupVersionKind) state {
	obj := objectOf(gvk, o.status)
	if o.deleted {
		obj.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-02T03:04:05Z"
	}
	return state{Name: gvk.Kind + " " + o.name, Object: obj, ArgoCD: o.argocd, Message: o.message, Flux: o.flux}
}

func objectOf(gvk schema.GroupVersionKind, status any) *unstructured.Unstructured {
	obj := map[string]any{"metadata": map[string]any{"name": "web", "namespace": "team", "generation": int64(generation)}}
	if status != absent {
		obj["status"] = status
	}
	out := &unstructured.Unstructured{Object: obj}
	out.SetGroupVersionKind(gvk)
	return out.DeepCopy()
}
