//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	children "github.com/modelbox-operator/modelbox-operator/controller/apply"
)

var _ = Describe("when the leading controller", Serial, func() {
	// within is measured from the loss to a write of the successor, and is to hold for
	// the middle one of the rounds; longest is to hold for each. After SIGKILL
	// it is the lease of 7 s, and up to four times the retry period.
	DescribeTable("is lost, the other acts, and no child is written twice",
		func(ctx SpecContext, within, longest time.Duration, lose func(context.Context, string)) {
			ns := newNamespace(ctx)
			seen := watching(ctx, ns)
			var times []time.Duration
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
				last := ""
				for i := range 10 {
					last = create(ctx, ns, fmt.Sprintf("after-%d-%d", round, i))
				}
				Eventually(func() error {
					return admin.Get(ctx, client.ObjectKey{Namespace: ns, Name: last}, &corev1.Service{})
				}, 20*time.Second, 20*time.Millisecond).Should(Succeed())
				times = append(times, time.Since(killed))
				AddReportEntry(fmt.Sprintf("acting again after %s, of which %s to give the order", time.Since(begun), killed.Sub(begun)), ReportEntryVisibilityAlways)
				Expect(leader()).NotTo(Equal(lost))
			}
			Eventually(seen.count).Should(Equal(200), "a Deployment and a Service each")
			Expect(seen.rewritten()).To(BeEmpty())
			slices.Sort(times)
			Expect(times[len(times)/2]).To(BeNumerically("<", within), "%v", times)
			Expect(times[len(times)-1]).To(BeNumerically("<", longest), "%v", times)
		},
		Entry("by SIGKILL, within 8 s, and never more than 10 s", 8*time.Second, 10*time.Second, kill),
		Entry("by SIGTERM, within 2 s", 2*time.Second, 4*time.Second, func(_ context.Context, pod string) {
			run(kubectl, "-n", system, "delete", "pod", pod, "--wait=false")
		}),
	)
})

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
	// told of, by operation and time.
	versions map[string]map[string]bool
	again    []string
}

// watching watches the Deployments and Services of a namespace.
func watching(ctx context.Context, ns string) *written {
	GinkgoHelper()
	w := &written{versions: map[string]map[string]bool{}}
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
	child := fmt.Sprintf("%T %s", obj, obj.GetName())
	if w.versions[child] == nil {
		w.versions[child] = map[string]bool{}
	}
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager == children.FieldManager && entry.Subresource == "" {
			w.versions[child][fmt.Sprintf("%s at %s", entry.Operation, entry.Time)] = true
		}
	}
	if obj.GetGeneration() > 1 || len(w.versions[child]) > 1 {
		w.again = append(w.again, fmt.Sprintf("%s: generation %d, %v", child, obj.GetGeneration(), w.versions[child]))
	}
}

// count is how many children our controller was seen to write.
func (w *written) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 0
	for _, writes := range w.versions {
		if len(writes) > 0 {
			count++
		}
	}
	return count
}

func (w *written) rewritten() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.again
}
