// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/api"
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/test/fakeserver"
)

var _ = Describe("histories of changed configuration", Ordered, func() {
	BeforeAll(alone)

	It("roll out nothing but the data of now, when they may, as often as it changes, and lose nothing", func(ctx SpecContext) {
		histories, rollouts := 6, 0
		if thoroughly {
			histories = 800
		}
		for i := range histories {
			h := newConfigurationHistory(ctx, historySeed(i), uint64(i))
			for range 20 {
				h.step()
			}
			h.settle()
			rollouts += h.rollouts
		}
		AddReportEntry(fmt.Sprintf("%d histories, %d rollouts of changed configuration alone", histories, rollouts))
		Expect(rollouts).To(BeNumerically(">", histories/2))
	})

	It("wait for a rollout whose answer was lost, and which the cache does not have", func(ctx SpecContext) {
		for _, frozen := range []bool{false, true} {
			h := newConfigurationHistory(ctx, 1, 0)
			// After the first apply, the next write of the Deployment is the apply alone.
			change(ctx, h.app, func(a *appv1.App) { a.Spec.Windows, a.Spec.Image = modelv1.Windows{}, "nginx:8" })
			h.edits++
			h.settle()
			h.faults = false
			l := h.leaders[0]
			l.behind(ctx, &appsv1.Deployment{ObjectMeta: h.app.ObjectMeta})
			change(ctx, h.app, func(a *appv1.App) { a.Spec.Image = "nginx:9" })
			write := l.write
			l.write = func(do func() error) error { return errors.Join(do(), fakeserver.ErrCut) }
			h.reconcile(0)
			l.write = write
			if frozen {
				h.freeze(true)
			}
			h.values["a"], h.edits = "2", h.edits+2
			change(ctx, configMap(h.app.Namespace, "a", ""), setValue("2"))
			for range 3 {
				h.pass(40 * time.Second)
				h.reconcile(0)
			}
			Expect(h.look().image).To(Equal("nginx:9"))
			h.settle()
		}
	})
})

// historySeed is 1 for the first four histories, and then another one with each run.
func historySeed(i int) uint64 {
	if i < 4 {
		return 1
	}
	return uint64(GinkgoRandomSeed())
}

// foreign is an image that another client sets.
const foreign = "foreign:1"

// opens is when the window of the histories that have one opens first, for a minute.
var opens = time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)

// configurationHistory is an App that refers to two ConfigMaps, with up to two controllers that reconcile it, on the real API
// server. Writes fail, lose their answers and end the process, caches are behind, and the clock jumps.
type configurationHistory struct {
	ctx      context.Context
	rnd      *rand.Rand
	app      *appv1.App
	values   map[string]string
	frozen   bool
	clock    *clocktesting.FakePassiveClock
	leaders  []*leader
	faults   bool
	image    string // That of the Deployment before another client changed it.
	now      string // One that is to be rolled out now.
	history  []string
	hashes   map[string]string // By value, as they were first seen. The same data has the same hash.
	edits    int
	writes   int // Changes of the pod template.
	rollouts int // Those that only change the annotation.
}

// leader is a controller that is a leader, or believes so.
type leader struct {
	*driven
	reconciler reconcile.Reconciler
}

// startLeader starts a process that reconciles Apps. Its writes fail at random while there are faults.
func startLeader(clk clock.PassiveClock, rnd *rand.Rand, faults *bool) *leader {
	d := drive()
	d.clock = clk
	d.write = func(do func() error) error {
		if !*faults {
			return do()
		}
		return fakeserver.Fail(rnd, 6, do)
	}
	return &leader{d, d.reconciler("App")}
}

func newConfigurationHistory(ctx context.Context, seed, i uint64) *configurationHistory {
	GinkgoHelper()
	h := &configurationHistory{
		ctx: ctx, rnd: rand.New(rand.NewPCG(seed, i)), values: map[string]string{}, hashes: map[string]string{}, faults: true,
		clock: clocktesting.NewFakePassiveClock(opens.Add(-time.Minute)), history: []string{fmt.Sprintf("seed %d, %d", seed, i)},
	}
	h.app = configured(metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}, "a", "b")
	if h.rnd.IntN(3) == 0 {
		h.app.Spec.Windows = windowAt(opens)
		if h.rnd.IntN(2) == 0 {
			h.app.Spec.HoldChanges = modelv1.HoldChangesAll
		}
	}
	for _, name := range []string{"a", "b"} {
		h.values[name] = "1"
		Expect(env.Client.Create(ctx, configMap(h.app.Namespace, name, "1"))).To(Succeed())
	}
	Expect(env.Client.Create(ctx, h.app)).To(Succeed())
	for range 1 + h.rnd.IntN(2) {
		h.leaders = append(h.leaders, h.start())
	}
	h.settle()
	return h
}

// start starts a process.
func (h *configurationHistory) start() *leader { return startLeader(h.clock, h.rnd, &h.faults) }

func (h *configurationHistory) say(format string, args ...any) {
	h.history = append(h.history, fmt.Sprintf(format, args...))
}

// step is a change by a user, of the time, or of what a controller knows, and a reconcile.
func (h *configurationHistory) step() {
	GinkgoHelper()
	deployment := &appsv1.Deployment{ObjectMeta: h.app.ObjectMeta}
	switch h.rnd.IntN(12) {
	case 0, 1, 2:
		name, value := []string{"a", "b"}[h.rnd.IntN(2)], fmt.Sprint(1+h.rnd.IntN(3))
		if h.values[name] != value {
			h.edits++
		}
		h.say("%s = %s", name, value)
		h.values[name] = value
		change(h.ctx, configMap(h.app.Namespace, name, ""), setValue(value))
	case 3:
		image := fmt.Sprintf("nginx:%d", 1+h.rnd.IntN(3))
		h.say("image %s", image)
		h.edits++
		change(h.ctx, h.app, func(a *appv1.App) { a.Spec.Image = image })
	case 4:
		h.freeze(!h.frozen)
	case 5:
		h.say("the rollout is complete")
		rollOut(h.ctx, h.app.ObjectMeta)
	case 6:
		l := h.leaders[h.rnd.IntN(len(h.leaders))]
		if len(l.cached) > 0 {
			clear(l.cached)
		} else {
			h.say("a cache is behind")
			l.behind(h.ctx, h.app.DeepCopy())
			l.behind(h.ctx, deployment)
		}
	case 7:
		replicas := 1 + h.rnd.Int32N(3)
		h.say("%d replicas", replicas)
		change(h.ctx, h.app, func(a *appv1.App) { a.Spec.Replicas = &replicas })
	case 8:
		if image := h.look().image; h.app.Spec.HoldChanges == modelv1.HoldChangesAll && image != foreign {
			h.say("another client sets the image %s", image)
			h.image = image
			change(h.ctx, deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = foreign })
		}
	case 9:
		h.say("the clock jumps")
		h.clock.SetTime(opens.Add(time.Duration(h.rnd.IntN(180)-90) * time.Second))
	case 10:
		h.say("the rollout of %s begins now", get(h.ctx, h.app).Spec.Image)
		h.now = h.app.Spec.Image
		change(h.ctx, h.app, func(a *appv1.App) {
			a.Annotations = map[string]string{api.AnnotationRolloutNow: fmt.Sprint(a.Generation)}
		})
	default:
	}
	h.pass([]time.Duration{time.Second, 3 * time.Second, 40 * time.Second}[h.rnd.IntN(3)])
	h.reconcile(h.rnd.IntN(len(h.leaders)))
}

func (h *configurationHistory) freeze(frozen bool) {
	GinkgoHelper()
	h.say("frozen: %t", frozen)
	h.frozen = frozen
	change(h.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.app.Namespace}}, func(n *corev1.Namespace) {
		n.Annotations = map[string]string{}
		if frozen {
			n.Annotations[api.AnnotationFrozen] = "now"
		}
	})
}

func (h *configurationHistory) pass(by time.Duration) { h.clock.SetTime(h.clock.Now().Add(by)) }

// found is what the Deployment has.
type found struct {
	exists, complete bool
	image            string
	replicas         int32
	lines            map[string]string
}

func (h *configurationHistory) look() found {
	GinkgoHelper()
	d := &appsv1.Deployment{ObjectMeta: h.app.ObjectMeta}
	err := env.Client.Get(h.ctx, client.ObjectKeyFromObject(d), d)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	if err != nil {
		return found{}
	}
	return found{true, d.Status.ObservedGeneration == d.Generation, d.Spec.Template.Spec.Containers[0].Image, *d.Spec.Replicas, linesOf(h.ctx, d.ObjectMeta)()}
}

// reconcile reconciles with a controller, which may die, and checks what it has written.
func (h *configurationHistory) reconcile(i int) {
	GinkgoHelper()
	before := h.look()
	_, err := fakeserver.Reconcile(h.ctx, h.leaders[i].reconciler, client.ObjectKeyFromObject(h.app))
	if err != nil && h.faults && h.rnd.IntN(2) == 0 {
		h.leaders[i] = h.start()
	}
	after := h.look()
	h.say("%s reconcile by %d: %v; %v", h.clock.Now().Format(time.TimeOnly), i, err, after)
	for name, hash := range after.lines {
		if hash == before.lines[name] {
			continue
		}
		value := h.values[name[len("ConfigMap/"):]]
		if h.hashes[value] == "" {
			Expect(slices.Collect(maps.Values(h.hashes))).NotTo(ContainElement(hash), "data of another time: %v", h.history)
			h.hashes[value] = hash
		}
		Expect(hash).To(Equal(h.hashes[value]), "the line of %s is not what the API server has: %v", name, h.history)
	}
	switch unchanged := maps.Equal(before.lines, after.lines); {
	case !before.exists:
	case before.image == foreign && after.image == h.image: // A repair.
	case before.image != after.image:
		h.writes++
		if h.now != after.image { // In a freeze, admission allows this only to those who may override that.
			h.inWindow(h.app.Spec.HoldChanges == modelv1.HoldChangesAll)
		}
		h.now = ""
	case !unchanged:
		h.writes++
		h.rollouts++
		Expect(h.frozen).To(BeFalse(), "a rollout in a freeze: %v", h.history)
		Expect(before.complete).To(BeTrue(), "a rollout before the one before is complete: %v", h.history)
		h.inWindow(len(h.app.Spec.Windows.Windows) > 0)
	}
}

// inWindow expects that the window is open, if a rollout had to wait for it.
func (h *configurationHistory) inWindow(waits bool) {
	GinkgoHelper()
	if now := h.clock.Now(); waits {
		at := opens.AddDate(now.Year()-opens.Year(), 0, 0) // It opens each year.
		Expect(now).To(And(BeTemporally(">=", at), BeTemporally("<", at.Add(time.Minute))), "outside of the window: %v", h.history)
	}
}

// settle lets all rollouts happen, without faults, and compares the pod template with the spec and the data.
func (h *configurationHistory) settle() {
	GinkgoHelper()
	h.freeze(false)
	h.faults = false
	for i := range 16 {
		for _, l := range h.leaders {
			clear(l.cached)
		}
		if h.look().exists {
			rollOut(h.ctx, h.app.ObjectMeta)
		}
		h.clock.SetTime(opens.AddDate(i/4, 0, 0).Add(time.Duration(i%4) * 10 * time.Second))
		h.reconcile(i % len(h.leaders))
	}
	h.faults = true
	after := h.look()
	get(h.ctx, h.app)
	Expect(after.image).To(Equal(h.app.Spec.Image), "%v", h.history)
	Expect(after.replicas).To(Equal(ptr.Deref(h.app.Spec.Replicas, 1)), "%v", h.history)
	for name, value := range h.values {
		Expect(after.lines["ConfigMap/"+name]).To(Equal(h.hashes[value]), "%s is lost: %v", name, h.history)
	}
	Expect(h.writes).To(BeNumerically("<=", h.edits), "more rollouts than changes: %v", h.history)
}
