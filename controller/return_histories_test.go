// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/test/fakeserver"
)

var _ = Describe("histories of onFailedRollout", Ordered, func() {
	BeforeAll(alone)

	It("return once for a spec that fails, and never from one that was complete", func(ctx SpecContext) {
		histories, returns := 6, 0
		if thoroughly {
			histories = 1000
		}
		for i := range histories {
			h := newReturnHistory(ctx, historySeed(i), uint64(i))
			for range 30 {
				h.step()
			}
			h.settle()
			returns += h.returns
		}
		AddReportEntry(fmt.Sprintf("%d histories, %d returns", histories, returns))
		Expect(returns).To(BeNumerically(">", histories/4))
	})
})

// returnHistory is an App with onFailedRollout: Return, with up to two controllers that reconcile it, on
// the real API server. A rollout of an image that begins with "bad" never becomes complete. Writes fail,
// lose their answers and end the process, and caches are behind.
type returnHistory struct {
	*returning
	rnd     *rand.Rand
	leaders []*leader
	faults  bool
	history []string
	// good are the images whose rollout was complete, and last is the one of the last.
	good map[string]bool
	last string
	// returned are how often the image of a generation of the spec was replaced by an earlier one.
	returned map[string]int
	returns  int
}

func newReturnHistory(ctx context.Context, seed, i uint64) *returnHistory {
	GinkgoHelper()
	h := &returnHistory{
		returning: newReturning(ctx, asItIs), rnd: rand.New(rand.NewPCG(seed, i)), faults: true, history: []string{fmt.Sprintf("seed %d, %d", seed, i)},
		good: map[string]bool{"good:1": true}, last: "good:1", returned: map[string]int{},
	}
	for range 1 + h.rnd.IntN(2) {
		h.leaders = append(h.leaders, h.start())
	}
	return h
}

// start starts a process.
func (h *returnHistory) start() *leader { return startLeader(h.fake, h.rnd, &h.faults) }

func (h *returnHistory) say(format string, args ...any) {
	h.history = append(h.history, fmt.Sprintf(format, args...))
}

// step is a change by a user, of the pods, of the time, or of what a controller knows, and a reconcile.
func (h *returnHistory) step() {
	GinkgoHelper()
	switch h.rnd.IntN(8) {
	case 0, 1:
		image := fmt.Sprintf("%s:%d", []string{"good", "bad"}[h.rnd.IntN(2)], 1+h.rnd.IntN(3))
		if get(h.ctx, h.app).Spec.Image == image {
			break
		}
		h.say("image %s", image)
		h.edit(ofImage(image))
		h.returned[image] = 0
	case 2:
		replicas := 1 + h.rnd.Int32N(3)
		h.say("%d replicas", replicas)
		h.edit(func(a *appv1.App) { a.Spec.Replicas = &replicas })
	case 3, 4:
		h.pods(h.rnd.IntN(4))
	case 5:
		l := h.leaders[h.rnd.IntN(len(h.leaders))]
		if len(l.cached) > 0 {
			clear(l.cached)
		} else {
			h.say("a cache is behind")
			l.behind(h.ctx, h.app.DeepCopy())
			l.behind(h.ctx, h.deployment.DeepCopy())
		}
	case 6:
		if records := h.records(); len(records) > 0 && h.rnd.IntN(4) == 0 {
			h.say("a record is deleted")
			Expect(client.IgnoreNotFound(env.Client.Delete(h.ctx, &records[0]))).To(Succeed())
		}
	}
	h.fake.SetTime(h.fake.Now().Add([]time.Duration{time.Second, time.Minute, 11 * time.Minute}[h.rnd.IntN(3)]))
	h.once(h.rnd.IntN(len(h.leaders)))
}

// pods lets the pods of the Deployment progress: begin, or end as their image says; or its controller
// has only seen the last change, and keeps the conditions.
func (h *returnHistory) pods(how int) {
	GinkgoHelper()
	image := h.image()
	switch {
	case how == 0:
		h.say("%s is observed", image)
		conditions := h.deployment.Status.Conditions
		writeDeploymentStatus(h.ctx, h.deployment.ObjectMeta, false, func(d *appsv1.Deployment) {
			if d.Status.Conditions = conditions; !h.good[image] || image != h.last {
				d.Status.UpdatedReplicas = 0
			}
		})
	case how == 1 && image != h.last:
		h.say("%s progresses", image)
		writeDeploymentStatus(h.ctx, h.deployment.ObjectMeta, false, func(d *appsv1.Deployment) {
			d.Status.UpdatedReplicas, d.Status.Conditions[1].Reason = 0, "ReplicaSetUpdated"
		})
	case strings.HasPrefix(image, "good"):
		h.say("%s is complete", image)
		h.good[image], h.last = true, image
		rollOut(h.ctx, h.deployment.ObjectMeta)
	default:
		h.say("%s exceeds its deadline", image)
		h.exceed()
	}
}

// once reconciles with a controller, which may die, and checks what it has written.
func (h *returnHistory) once(i int) {
	GinkgoHelper()
	before, spec := h.image(), get(h.ctx, h.app).Spec.Image
	failed := h.app.Status.Rollout != nil && h.app.Status.Rollout.Failed != ""
	complete := before == h.last && h.deployment.Status.ObservedGeneration == h.deployment.Generation && h.deployment.Status.Conditions[1].Reason == "NewReplicaSetAvailable"
	_, err := fakeserver.Reconcile(h.ctx, h.leaders[i].reconciler, client.ObjectKeyFromObject(h.app))
	if err != nil && h.faults && h.rnd.IntN(2) == 0 {
		h.leaders[i] = h.start()
	}
	after := h.image()
	h.say("%s reconcile by %d: %v; %s -> %s, of %s", h.fake.Now().Format(time.TimeOnly), i, err, before, after, spec)
	if after == before || after == spec {
		return
	}
	if before != spec && failed { // Status does not have a change that was undone before: the object is still returned.
		return
	}
	h.returns++
	h.returned[spec]++
	Expect(before).To(Equal(spec), "neither the spec nor what served: %v", h.history)
	Expect(complete).To(BeFalse(), "a return from a complete rollout: %v", h.history)
	Expect(h.good).To(HaveKey(after), "a return to what was never complete: %v", h.history)
	Expect(h.returned[spec]).To(Equal(1), "a second return: %v", h.history)
}

// settle lets all rollouts end, without faults: what serves is the spec if it can, and otherwise the last
// rollout that was complete, unless its record is gone.
func (h *returnHistory) settle() {
	GinkgoHelper()
	h.faults = false
	for i := range 10 {
		for _, l := range h.leaders {
			clear(l.cached)
		}
		h.once(i % len(h.leaders))
		if h.pods(2); h.deployment.Status.Conditions[1].Status == corev1.ConditionFalse {
			h.fake.SetTime(h.fake.Now().Add(time.Hour))
		}
		h.once(i % len(h.leaders))
	}
	serves, spec := h.image(), get(h.ctx, h.app).Spec.Image
	if strings.HasPrefix(spec, "good") && h.app.Status.Rollout.Failed == "" { // Else its deadline has passed before its pods began.
		Expect(serves).To(Equal(spec), "%v", h.history)
		Expect(readiness(h.ctx, h.app)()).To(Equal("True Ready"), "%v", h.history)
		return
	}
	Expect(readiness(h.ctx, h.app)()).To(BeElementOf("False RolledBack", "False "+status.ReasonProgressDeadline), "%v", h.history)
	if serves != spec {
		Expect(h.good).To(HaveKey(serves), "%v", h.history)
		return
	}
	Expect(strings.Join(h.history, "\n")).To(ContainSubstring("a record is deleted"), "the spec that fails serves: %v", h.history)
}
