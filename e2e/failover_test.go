//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	children "github.com/modelbox-operator/modelbox-operator/controller/apply"
)

var _ = Describe("when the leading controller", Serial, func() {
	// within is from the loss to the successor's first write, and is to hold for the
	// middle one of the rounds. longest is until ten objects are written, and is to
	// hold for each round. After SIGKILL the successor waits for the lease of 7 s, and
	// for up to four times the retry period.
	DescribeTable("is lost, the other acts, and no child is written twice",
		func(ctx SpecContext, within, longest time.Duration, lose func(context.Context, string)) {
			ns := newNamespace(ctx)
			seen := watching(ctx, ns)
			var times []time.Duration
			var slowest time.Duration
			for round := range 5 {
				Eventually(func() []corev1.Pod { return readyPods(ctx, "modelbox-controller") }).Should(HaveLen(2))
				// Some are written by the one, some by the other.
				for i := range 10 {
					create(ctx, ns, fmt.Sprintf("before-%d-%d", round, i))
				}
				lost := leader()
				begun := time.Now()
				lose(ctx, lost)
				killed := time.Now()
				prefix := fmt.Sprintf("after-%d-", round)
				for i := range 10 {
					create(ctx, ns, fmt.Sprintf("%s%d", prefix, i))
				}
				Eventually(seen.children).WithArguments(prefix).WithTimeout(20*time.Second).WithPolling(20*time.Millisecond).
					Should(HaveLen(20), "a Deployment and a Service each")
				all := time.Since(killed)
				acquired := get(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "modelbox-controller"}}).Spec.AcquireTime
				// A leader that ends by itself may still write some of them.
				first := slices.MinFunc(slices.DeleteFunc(seen.children(prefix), acquired.After), time.Time.Compare).Sub(killed)
				AddReportEntry(fmt.Sprintf("after %s to give the order: lease acquired %s later, first write %s, all %s",
					killed.Sub(begun), acquired.Sub(killed), first, all), ReportEntryVisibilityAlways)
				times, slowest = append(times, first), max(slowest, all)
				Expect(leader()).NotTo(Equal(lost))
				Eventually(elections).WithContext(ctx).Should(ContainElement(HavePrefix(leader())))
			}
			Eventually(seen.children).WithArguments("").Should(HaveLen(200))
			Expect(seen.rewritten()).To(BeEmpty())
			slices.Sort(times)
			Expect(times[len(times)/2]).To(BeNumerically("<", within), "%v", times)
			Expect(slowest).To(BeNumerically("<", longest))
		},
		Entry("by SIGKILL, within 8 s, and never more than 10 s", 8*time.Second, 10*time.Second, kill),
		Entry("by SIGTERM, within 2 s", 2*time.Second, 4*time.Second, func(_ context.Context, pod string) {
			run(kubectl, "-n", system, "delete", "pod", pod, "--wait=false")
		}),
	)
})

// elections are the messages of the events about the lease.
func elections(ctx context.Context) ([]string, error) {
	list := &eventsv1.EventList{}
	err := admin.List(ctx, list, client.InNamespace(system))
	var notes []string
	for _, event := range list.Items {
		if event.Reason == "LeaderElection" {
			notes = append(notes, event.Note)
		}
	}
	return notes, err
}

// create makes a ModelBox that asks for no pods.
func create(ctx context.Context, ns, name string) string {
	GinkgoHelper()
	Expect(admin.Create(ctx, &modelv1.ModelBox{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       modelv1.ModelBoxSpec{Image: nginx, Replicas: new(int32(0)), Ports: []modelv1.Port{{Port: 80}}},
	})).To(Succeed())
	return name
}

func readyPods(ctx context.Context, process string) []corev1.Pod {
	GinkgoHelper()
	var ready []corev1.Pod
	for _, pod := range podsOf(ctx, process) {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				ready = append(ready, pod)
			}
		}
	}
	return ready
}

// written sees every write on the children in a namespace.
type written struct {
	mu sync.Mutex
	// versions are, for each child, the writes of our controller that managedFields
	// tell of, by operation and time.
	versions map[childKey]map[string]bool
	// first is when each child was first seen with a write of our controller.
	first map[childKey]time.Time
	again []string
}

type childKey struct{ kind, name string }

// watching watches the Deployments and Services of a namespace.
func watching(ctx context.Context, ns string) *written {
	GinkgoHelper()
	w := &written{versions: map[childKey]map[string]bool{}, first: map[childKey]time.Time{}}
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ServiceList{}} {
		watcher, err := admin.Watch(ctx, list, client.InNamespace(ns))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(watcher.Stop)
		go w.follow(watcher.ResultChan())
	}
	return w
}

func (w *written) follow(events <-chan watch.Event) {
	for event := range events {
		if obj, ok := event.Object.(client.Object); ok && event.Type != watch.Deleted {
			w.saw(obj)
		}
	}
}

// saw notes our own writes on a child: its generation, which its spec's changes
// count up, and the last time that our manager wrote a field.
func (w *written) saw(obj client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	child := childKey{fmt.Sprintf("%T", obj), obj.GetName()}
	if w.versions[child] == nil {
		w.versions[child] = map[string]bool{}
	}
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager == children.FieldManager && entry.Subresource == "" {
			if len(w.versions[child]) == 0 {
				w.first[child] = time.Now()
			}
			w.versions[child][fmt.Sprintf("%s at %s", entry.Operation, entry.Time)] = true
		}
	}
	if obj.GetGeneration() > 1 || len(w.versions[child]) > 1 {
		w.again = append(w.again, fmt.Sprintf("%s: generation %d, %v", child, obj.GetGeneration(), w.versions[child]))
	}
}

// children are the times at which our controller was first seen to write the
// children whose names begin with a prefix.
func (w *written) children(prefix string) []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var times []time.Time
	for child, first := range w.first {
		if strings.HasPrefix(child.name, prefix) {
			times = append(times, first)
		}
	}
	return times
}

func (w *written) rewritten() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.again
}
