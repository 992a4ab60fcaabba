// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/test/indexed"
)

// cluster is a cache with the indexes of the controller, and its reconciler.
type cluster struct {
	t          testing.TB
	cache      *indexed.Cache
	reconciler *Reconciler
}

// reading is a client that only reads.
type reading struct {
	client.Client
	cache *indexed.Cache
}

func (r reading) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return r.cache.Get(ctx, key, obj, opts...)
}

func (r reading) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.cache.List(ctx, list, opts...)
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	c := indexed.New(&extensionv1.UnitedDeployment{}, &autoscalingv2.HorizontalPodAutoscaler{}, &appsv1.Deployment{})
	w := &cluster{t: t, cache: c, reconciler: New(reading{cache: c}, &events.FakeRecorder{}, clock.RealClock{})}
	if err := w.reconciler.rivals.Index(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := w.reconciler.autoscalers.Index(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *cluster) store(obj client.Object) {
	if err := w.cache.Of(obj).Update(obj); err != nil {
		w.t.Error(err)
	}
}

func (w *cluster) holder(ud *extensionv1.UnitedDeployment, target *appsv1.Deployment) string {
	target.Namespace = ud.Namespace
	got, err := w.reconciler.holder(w.t.Context(), ud, target)
	if err != nil {
		w.t.Error(err)
	}
	return got
}

// all returns the objects of a kind in the cache.
func all[T any, P interface {
	*T
	client.Object
}](c *indexed.Cache) []T {
	var objs []T
	for _, obj := range c.Of(P(new(T))).List() {
		objs = append(objs, *obj.(P))
	}
	return objs
}

func (w *cluster) model(ud *extensionv1.UnitedDeployment, target *appsv1.Deployment) string {
	var rivals []extensionv1.UnitedDeployment
	for _, rival := range all[extensionv1.UnitedDeployment](w.cache) {
		if cache.DecodeErrorOf(&rival) == nil {
			rivals = append(rivals, rival)
		}
	}
	return modelHolder(ud, target, all[autoscalingv2.HorizontalPodAutoscaler](w.cache), rivals)
}

// history makes random changes of the objects of one namespace, and reports their events as
// informers do.
type history struct {
	*cluster
	random  *rand.Rand
	version int
	pending []func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request])
}

// undecodable is the annotation of an object that the cache could not decode.
const undecodable = "cache.modelbox-operator.github.io/undecodable"

var targets = []string{"web", "db"}

// change changes an object of either kind.
func (h *history) change() {
	h.version++
	if h.random.IntN(4) == 0 {
		h.changeScaler(fmt.Sprint("hpa-", h.random.IntN(3)))
		return
	}
	h.changeUnited(fmt.Sprint("ud-", h.random.IntN(6)))
}

// changeUnited creates a UnitedDeployment, whose creationTimestamp may be before that of
// older ones because clocks differ, or changes it in one of the ways that matter.
func (h *history) changeUnited(name string) {
	next := united(name, types.UID(fmt.Sprint(h.random.IntN(1000), "-", h.version)), h.random.IntN(5), h.target())
	before := h.get(&next)
	if before == nil {
		h.record(nil, &next, unitedEvents(h.reconciler))
		return
	}
	old := before.(*extensionv1.UnitedDeployment)
	changed := old.DeepCopy()
	changed.Generation++
	switch h.random.IntN(7) {
	case 0:
		h.record(old, nil, unitedEvents(h.reconciler))
		return
	case 1:
		changed.Spec.DeploymentName = h.target()
	case 2:
		changed.DeletionTimestamp = new(metav1.Now())
	case 3:
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, undecodable, "cannot be decoded")
	case 4:
		delete(changed.Annotations, undecodable)
	case 5: // It was deleted and created again while the watch was interrupted.
		changed = &next
	case 6:
		changed.Generation--
		changed.Status.Replicas++
	}
	h.record(old, changed, unitedEvents(h.reconciler))
}

func (h *history) changeScaler(name string) {
	next := scaler("apps/v1", []string{"Deployment", "StatefulSet"}[h.random.IntN(2)], h.target())
	next.Name, next.UID = name, types.UID(fmt.Sprint(h.random.IntN(1000), "-", h.version))
	next.CreationTimestamp = metav1.NewTime(time.Unix(int64(h.random.IntN(5)), 0))
	events := trigger.EnqueueSuccession(&h.reconciler.rivals, &h.reconciler.autoscalers)
	before := h.get(&next)
	switch {
	case before == nil:
		h.record(nil, &next, events)
	case h.random.IntN(2) == 0:
		h.record(before, nil, events)
	default:
		next.ObjectMeta = before.(*autoscalingv2.HorizontalPodAutoscaler).ObjectMeta
		h.record(before, &next, events)
	}
}

func (h *history) target() string { return targets[h.random.IntN(len(targets))] }

func (h *history) get(obj client.Object) client.Object {
	found, exists, err := h.cache.Of(obj).Get(obj)
	if err != nil {
		h.t.Fatal(err)
	}
	if !exists {
		return nil
	}
	return found.(client.Object)
}

// record changes the store, and keeps the event for later: a store is changed before the
// handlers of its events are called.
func (h *history) record(before, after client.Object, handle handler.EventHandler) {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	if after == nil {
		_ = h.cache.Of(before).Delete(before)
		h.pending = append(h.pending, func(ctx context.Context, q queue) { handle.Delete(ctx, event.DeleteEvent{Object: before}, q) })
		return
	}
	after.SetResourceVersion(fmt.Sprint(h.version))
	h.store(after)
	h.pending = append(h.pending, func(ctx context.Context, q queue) {
		if before == nil {
			handle.Create(ctx, event.CreateEvent{Object: after}, q)
			return
		}
		handle.Update(ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
	})
}

// unitedEvents handles the events of UnitedDeployments as the two watches do.
func unitedEvents(r *Reconciler) handler.EventHandler {
	self, others := &handler.EnqueueRequestForObject{}, trigger.EnqueueSuccession(&r.rivals, &r.rivals)
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			self.Create(ctx, e, q)
			others.Create(ctx, e, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			self.Delete(ctx, e, q)
			others.Delete(ctx, e, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if specChanged(e) {
				self.Update(ctx, e, q)
				others.Update(ctx, e, q)
			}
		},
	}
}

// specChanged is the predicate trigger.SpecChanged.
func specChanged(e event.UpdateEvent) bool {
	return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
		(cache.DecodeErrorOf(e.ObjectOld) == nil) != (cache.DecodeErrorOf(e.ObjectNew) == nil)
}

// After any changes, in any number before their handlers are called, each UnitedDeployment
// reports the holder that the model names: what it reported when it was last enqueued.
func TestEachUnitedDeploymentReportsTheHolder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		h := &history{cluster: newCluster(t), random: rand.New(rand.NewPCG(seed, 13))}
		reported := map[string]string{}
		for range 60 {
			for range 1 + h.random.IntN(3) {
				h.change()
			}
			h.reconcile(reported)
			if difference := h.compare(reported); difference != "" {
				t.Fatalf("seed %d: %s", seed, difference)
			}
		}
	}
}

// reconcile calls the handlers of the events and reconciles what they enqueue.
func (h *history) reconcile(reported map[string]string) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	for _, handle := range h.pending {
		handle(h.t.Context(), queue)
	}
	h.pending = nil
	for queue.Len() > 0 {
		request, _ := queue.Get()
		ud := &extensionv1.UnitedDeployment{}
		if err := h.cache.Get(h.t.Context(), request.NamespacedName, ud); err == nil && cache.DecodeErrorOf(ud) == nil && ud.DeletionTimestamp == nil {
			reported[ud.Name] = h.holder(ud, named(ud.Spec.DeploymentName))
		}
	}
}

func named(deployment string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: deployment}}
}

// compare compares what UnitedDeployments have reported, and would report now, with the model.
func (h *history) compare(reported map[string]string) string {
	for _, ud := range all[extensionv1.UnitedDeployment](h.cache) {
		if cache.DecodeErrorOf(&ud) != nil || ud.DeletionTimestamp != nil {
			continue
		}
		want := h.model(&ud, named(ud.Spec.DeploymentName))
		if got := h.holder(&ud, named(ud.Spec.DeploymentName)); got != want {
			return fmt.Sprintf("the holder for %s is %q, want %q", ud.Name, got, want)
		}
		if got := reported[ud.Name]; got != want {
			return fmt.Sprintf("%s reported %q, want %q", ud.Name, got, want)
		}
	}
	return ""
}

// While rivals come, go and change, in another goroutine than the readers', a reader never
// finds an object that is younger than one which is in the cache all the time; and when all
// is quiet it finds the oldest.
func TestOldestBesideChanges(t *testing.T) {
	t.Parallel()
	w := newCluster(t)
	steady := united("steady", "s", 50, "web")
	w.store(&steady)
	var changes, readers sync.WaitGroup
	done := make(chan struct{})
	for reader := range 4 {
		readers.Go(func() {
			ud := united(fmt.Sprint("reader-", reader), "zz", 60, "web")
			for running := true; running; {
				select {
				case <-done:
					running = false
				default:
				}
				if got := w.holder(&ud, named("web")); got == "" || strings.Contains(got, "young") {
					t.Errorf("the holder is %q, want steady or an older one", got)
					return
				}
			}
		})
	}
	changes.Go(func() {
		for i := range 3000 {
			old := united(fmt.Sprint("old-", i%7), types.UID(fmt.Sprint(i)), 10+i%5, "web")
			young := united(fmt.Sprint("young-", i%5), types.UID(fmt.Sprint(i)), 55, "web")
			w.store(&old)
			w.store(&young)
			if i%3 == 0 {
				_ = w.cache.Of(&old).Delete(&old)
			}
		}
	})
	changes.Wait()
	close(done)
	readers.Wait()
	ud := united("last", "zz", 60, "web")
	if got, want := w.holder(&ud, named("web")), w.model(&ud, named("web")); got != want {
		t.Errorf("the holder is %q, want %q", got, want)
	}
}

// crowd returns a cluster with n UnitedDeployments and n autoscalers on one Deployment; the
// autoscalers scale something else if yield is false.
func crowd(t testing.TB, n int, yield bool) *cluster {
	w := newCluster(t)
	deployment := named("web")
	deployment.Namespace = "team"
	w.store(deployment)
	kind := "StatefulSet"
	if yield {
		kind = "Deployment"
	}
	for i := range n {
		ud := united(fmt.Sprint("ud-", i), types.UID(fmt.Sprint(i)), i, "web")
		hpa := scaler("apps/v1", kind, "web")
		ud.Namespace, hpa.Namespace = "team", "team"
		hpa.Name, hpa.UID = fmt.Sprint("hpa-", i), types.UID(fmt.Sprint(i))
		w.store(&ud)
		w.store(&hpa)
	}
	return w
}

// reconcileAll handles an update of the Deployment and reconciles all that it enqueues. It
// returns their number.
func (w *cluster) reconcileAll(change func(*appsv1.Deployment)) int {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	before := named("web")
	before.Namespace = "team"
	after := before.DeepCopy()
	change(after)
	w.store(after)
	trigger.EnqueueNamedOnChange(&w.reconciler.rivals, observedOf).Update(w.t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, queue)
	count := queue.Len()
	for range count {
		request, _ := queue.Get()
		ud := &extensionv1.UnitedDeployment{}
		if err := w.cache.Get(w.t.Context(), request.NamespacedName, ud); err != nil {
			w.t.Fatal(err)
		}
		ahead := func(context.Context) error { return context.Canceled } // The holder writes nothing here.
		_, _ = w.reconciler.Reconcile(w.t.Context(), ud, ahead)
		queue.Done(request)
	}
	return count
}

// One change of a Deployment's status costs each of its UnitedDeployments the same, however
// many there are: it reads itself, the Deployment, and the oldest of each kind. At first it
// read all others of both kinds.
func TestCostOfADeploymentIsLinear(t *testing.T) {
	for _, yield := range []bool{false, true} {
		for _, n := range []int{200, 400, 1600} {
			w := crowd(t, n, yield)
			before := w.cache.Reads()
			enqueued := w.reconcileAll(func(d *appsv1.Deployment) { d.Status.Replicas = 7 })
			// Each: once as a request, and the four reads; and the first scan of both kinds.
			if reads, most := w.cache.Reads()-before, (5+2)*n+10; enqueued != n || reads > most {
				t.Errorf("%d rivals, of which %d are enqueued, read %d objects, want at most %d", n, enqueued, reads, most)
			}
		}
	}
}

func TestAllocationsOfADeploymentAreLinear(t *testing.T) {
	cost := func(n int) float64 {
		w := crowd(t, n, true)
		replicas := int32(0)
		return testing.AllocsPerRun(1, func() {
			replicas++
			w.reconcileAll(func(d *appsv1.Deployment) { d.Status.Replicas = replicas })
		}) / float64(n)
	}
	few, many := cost(200), cost(1600)
	t.Logf("allocations for each rival: %.0f of 200, %.0f of 1,600", few, many)
	if many > 1.2*few {
		t.Errorf("each of 1,600 rivals costs %.0f allocations, each of 200 costs %.0f", many, few)
	}
}

func TestAnAnnotationOfADeploymentEnqueuesNothing(t *testing.T) {
	w := crowd(t, 1500, false)
	before := w.cache.Reads()
	for _, change := range []func(*appsv1.Deployment){
		func(d *appsv1.Deployment) { d.Annotations = map[string]string{"a": "b"} },
		func(d *appsv1.Deployment) { d.Labels = map[string]string{"a": "b"} },
		func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 7 },
	} {
		if enqueued := w.reconcileAll(change); enqueued != 0 {
			t.Errorf("%d UnitedDeployments are enqueued", enqueued)
		}
	}
	if reads := w.cache.Reads() - before; reads > 3 {
		t.Errorf("%d objects are read, want one for each event", reads)
	}
}

// Everything that a reconcile reads of a Deployment enqueues its UnitedDeployments.
func TestObservedOf(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*appsv1.Deployment){
		"spec.replicas":     func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(7)) },
		"spec.selector":     func(d *appsv1.Deployment) { d.Spec.Selector = metav1.SetAsLabelSelector(map[string]string{"a": "b"}) },
		"generation":        func(d *appsv1.Deployment) { d.Generation = 7 },
		"deletionTimestamp": func(d *appsv1.Deployment) { d.DeletionTimestamp = new(metav1.Now()) },
		"controller reference": func(d *appsv1.Deployment) {
			d.OwnerReferences = ownedBy(modelv1.SchemeGroupVersion.WithKind("ModelBox")).OwnerReferences
		},
		"status.replicas":          func(d *appsv1.Deployment) { d.Status.Replicas = 7 },
		"status.readyReplicas":     func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 7 },
		"status.availableReplicas": func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 7 },
	} {
		d := named("web")
		before := observedOf(d)
		change(d)
		if observedOf(d) == before {
			t.Errorf("a change of %s is not seen", name)
		}
	}
}

// 1,600 rivals that are created one after the other do not enqueue each other.
func TestCreationOfRivalsIsLinear(t *testing.T) {
	w := newCluster(t)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	enqueued := 0
	for i := range 1600 {
		ud := united(fmt.Sprint("ud-", i), types.UID(fmt.Sprint(i)), i, "web")
		w.store(&ud)
		unitedEvents(w.reconciler).Create(t.Context(), event.CreateEvent{Object: &ud}, queue)
		for queue.Len() > 0 {
			request, _ := queue.Get()
			queue.Done(request)
			enqueued++
		}
	}
	if reads := w.cache.Reads(); enqueued > 1601 || reads > 2*1600 {
		t.Errorf("%d requests and %d reads", enqueued, reads)
	}
}

func BenchmarkStatusOfADeployment(b *testing.B) {
	for _, n := range []int{200, 400, 1600} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := crowd(b, n, false)
			replicas := int32(0)
			for b.Loop() {
				replicas++
				w.reconcileAll(func(d *appsv1.Deployment) { d.Status.Replicas = replicas })
			}
		})
	}
}
