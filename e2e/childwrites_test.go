// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	children "github.com/modelbox-operator/modelbox-operator/controller/apply"
)

// childWrites records the controller's writes of the children in a namespace.
type childWrites struct {
	mu sync.Mutex
	// versions holds, for each child, the controller's entries in managedFields, by
	// operation and time.
	versions map[childKey]map[string]bool
	// specs holds the specs that each child had. A Service has no generation that would tell whether
	// its spec has changed.
	specs map[childKey]map[string]bool
}

type childKey struct{ kind, name string }

func newChildWrites() *childWrites {
	return &childWrites{versions: map[childKey]map[string]bool{}, specs: map[childKey]map[string]bool{}}
}

func (w *childWrites) follow(events <-chan watch.Event) {
	for event := range events {
		if obj, ok := event.Object.(client.Object); ok && event.Type != watch.Deleted {
			w.record(obj)
		}
	}
}

// record records the controller's writes of a child. A second write is visible in another time of
// the controller's entry in managedFields, and, if it changed the child, in another spec.
func (w *childWrites) record(obj client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	child := childKey{fmt.Sprintf("%T", obj), obj.GetName()}
	if w.versions[child] == nil {
		w.versions[child], w.specs[child] = map[string]bool{}, map[string]bool{}
	}
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager == children.FieldManager && entry.Subresource == "" {
			w.versions[child][fmt.Sprintf("%s at %s", entry.Operation, entry.Time)] = true
		}
	}
	w.specs[child][specOf(obj)] = true
}

// specOf returns the spec of a child as JSON. Keys of maps are sorted, so equal specs are equal
// texts.
func specOf(obj client.Object) string {
	var spec any
	switch child := obj.(type) {
	case *appsv1.Deployment:
		spec = child.Spec
	case *corev1.Service:
		spec = child.Spec
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// written returns how many children whose names have a prefix the controller has written.
func (w *childWrites) written(prefix string) (count int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for child, versions := range w.versions {
		if strings.HasPrefix(child.name, prefix) && len(versions) > 0 {
			count++
		}
	}
	return count
}

// repeated returns the children whose spec has changed since they were created, and those of the
// others that the controller wrote more than once.
func (w *childWrites) repeated() (changed, unchanged []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for child, versions := range w.versions {
		switch text := fmt.Sprintf("%s: %v", child, versions); {
		case len(w.specs[child]) > 1:
			changed = append(changed, text)
		case len(versions) > 1:
			unchanged = append(unchanged, text)
		}
	}
	return changed, unchanged
}

// TestChildWrites: this needs no cluster, unlike the suite.
func TestChildWrites(t *testing.T) {
	t.Parallel()
	written := func(obj client.Object, second int64) client.Object {
		obj.SetName("box")
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: children.FieldManager, Time: new(metav1.Unix(second, 0))}})
		return obj
	}
	service := func(second int64, how func(*corev1.Service)) client.Object {
		s := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"a": "b", "c": "d"}}}
		how(s)
		return written(s, second)
	}
	deployment := func(second int64, how func(*appsv1.Deployment)) client.Object {
		d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(0))}}
		how(d)
		return written(d, second)
	}
	sameService, sameDeployment := func(*corev1.Service) {}, func(*appsv1.Deployment) {}
	for name, test := range map[string]struct {
		seen               []client.Object
		changed, unchanged int
	}{
		"a Service, written once":  {[]client.Object{service(1, sameService), service(1, sameService)}, 0, 0},
		"a Service, written again": {[]client.Object{service(1, sameService), service(2, sameService)}, 0, 1},
		"a Service with another port": {
			[]client.Object{service(1, sameService), service(2, func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })}, 1, 0},
		"a Service that was changed and changed back": {
			[]client.Object{service(1, sameService), service(2, func(s *corev1.Service) { s.Spec.Selector = nil }), service(3, sameService)}, 1, 0},
		"a Service with another status": {
			[]client.Object{service(1, sameService), service(1, func(s *corev1.Service) { s.Status.Conditions = make([]metav1.Condition, 1) })}, 0, 0},
		"a Deployment with another generation and status": {
			[]client.Object{deployment(1, sameDeployment), deployment(1, func(d *appsv1.Deployment) { d.Generation, d.Status.ObservedGeneration = 2, 2 })}, 0, 0},
		"a Deployment, written again": {[]client.Object{deployment(1, sameDeployment), deployment(2, sameDeployment)}, 0, 1},
		"a Deployment with another number of replicas, in the same second": {
			[]client.Object{deployment(1, sameDeployment), deployment(1, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(1)) })}, 1, 0},
		"one of each kind": {[]client.Object{service(1, sameService), deployment(2, sameDeployment)}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newChildWrites()
			for _, obj := range test.seen {
				w.record(obj)
			}
			if changed, unchanged := w.repeated(); len(changed) != test.changed || len(unchanged) != test.unchanged {
				t.Errorf("changed: %v, want %d; unchanged: %v, want %d", changed, test.changed, unchanged, test.unchanged)
			}
		})
	}
}
