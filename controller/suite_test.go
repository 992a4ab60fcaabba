// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/api"
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/app"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/configuration"
	"github.com/modelbox-operator/modelbox-operator/controller/eru"
	"github.com/modelbox-operator/modelbox-operator/controller/freeze"
	"github.com/modelbox-operator/modelbox-operator/controller/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/controller/modelbox"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/uniteddeployment"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

var (
	env *testenv.Env
	// asController is the user of the controller, so that the audit log distinguishes its
	// requests from those of the tests.
	asController *rest.Config
	running      *process
	// modelFetcher is the flags of the container that fetches models, of each controller.
	modelFetcher = models.Fetcher{Image: "modelbox-controller:v1"}
)

// controllers is the beginning of the names of all users that controllers run as. The policy
// that bounds the controller's identity is in effect for them, in all specs.
const controllers = "system:serviceaccount:" + controllerNamespace + ":"

const controllerUser = controllers + "modelbox-controller"

func TestController(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "controller")
}

// long is the priority of the specs that take longest. They begin first, so that at the end no
// process of the suite is busy for a minute while the others have nothing to do.
const long = SpecPriority(1)

// Each process of a parallel run has a control plane of its own, so that no spec observes the
// objects and requests of another process, and none has to be Serial.
var _ = BeforeSuite(func() {
	logger := zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	format.MaxLength = 0
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)

	var err error
	env, err = testenv.Start(testenv.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return env.Stop() })
	asController, err = env.As(controllerUser)
	Expect(err).NotTo(HaveOccurred())
	Expect(env.BindControllers(context.Background(), "", controllers, asController)).To(Succeed())
	start()
	DeferCleanup(stop)
})

// newManager returns the manager of a controller process with the given flags.
func newManager(cfg *rest.Config, o *options, with ...func(*ctrl.Options)) manager.Manager {
	GinkgoHelper()
	managerOptions, err := o.managerOptions(cfg)
	Expect(err).NotTo(HaveOccurred())
	// Several managers of one process register metrics of the same names.
	managerOptions.Controller.SkipNameValidation = new(true)
	for _, change := range with {
		change(&managerOptions)
	}
	mgr, err := ctrl.NewManager(cfg, managerOptions)
	Expect(err).NotTo(HaveOccurred())
	return mgr
}

// process is a manager that runs.
type process struct {
	manager.Manager
	cancel context.CancelFunc
	done   chan error
}

// launch starts a manager.
func launch(mgr manager.Manager) *process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{Manager: mgr, cancel: cancel, done: make(chan error, 1)}
	go func() {
		p.done <- mgr.Start(ctx)
		close(p.done)
	}()
	return p
}

// end ends the manager, and returns its error the first time.
func (p *process) end() error {
	p.cancel()
	select {
	case err := <-p.done:
		return err
	case <-time.After(time.Minute):
		return errors.New("the controller does not end")
	}
}

// synced waits until the caches of the manager have synced.
func (p *process) synced() *process {
	GinkgoHelper()
	Eventually(p.Elected()).Should(BeClosed())
	Expect(p.GetCache().WaitForCacheSync(context.Background())).To(BeTrue())
	return p
}

// unserved are the options of a controller that serves nothing over HTTP.
func unserved() options {
	return options{metricsAddress: "0", probeAddress: "0", pprofAddress: "0", workers: 4, fetcher: modelFetcher}
}

// defaults are the options of the default flags, without what is served over HTTP.
func defaults() options {
	var o options
	o.bind(flag.NewFlagSet("", flag.PanicOnError))
	o.metricsAddress, o.probeAddress = "0", "0"
	return o
}

// start starts the controller process, as main runs it, and waits until its caches have synced.
func start() {
	GinkgoHelper()
	o := unserved()
	mgr := newManager(asController, &o)
	Expect(addControllersAndProbes(mgr, &o)).To(Succeed())
	running = launch(mgr).synced()
}

func stop() {
	GinkgoHelper()
	Expect(running.end()).To(Succeed())
}

// launchKinds starts a controller of all kinds with a clock.
func launchKinds(cfg *rest.Config, o *options, clk clock.PassiveClock, with ...func(*ctrl.Options)) *process {
	GinkgoHelper()
	mgr := newManager(cfg, o, with...)
	Expect(o.addControllers(mgr, clk)).To(Succeed())
	return launch(mgr)
}

// each does the same for all items at the same time.
func each[T any](items []T, do func(T)) {
	GinkgoHelper()
	var group sync.WaitGroup
	for _, item := range items {
		group.Go(func() {
			defer GinkgoRecover()
			do(item)
		})
	}
	group.Wait()
}

// alone ends the controller of the suite until the spec ends, or the container: only what the specs
// start themselves may reconcile.
func alone() {
	GinkgoHelper()
	stop()
	DeferCleanup(start)
}

// waitUntilCached waits until the controller's cache has an object. The watches of two kinds are
// independent: the event of an object that was created later may come earlier.
func waitUntilCached(ctx context.Context, obj client.Object) {
	GinkgoHelper()
	seen := obj.DeepCopyObject().(client.Object)
	Eventually(func() error {
		err := running.GetCache().Get(ctx, client.ObjectKeyFromObject(obj), seen)
		if _, later := errors.AsType[*cache.ErrResourceNotCached](err); later {
			return nil // Its informer starts with the first owner, and lists the object then.
		}
		return err
	}).Should(Succeed())
}

// newNamespace creates a namespace for one spec.
func newNamespace() string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(env.Client.Create(context.Background(), ns)).To(Succeed())
	return ns.Name
}

// createBox creates a ModelBox in a namespace of its own.
func createBox(ctx context.Context, how func(*modelv1.ModelBoxSpec)) *modelv1.ModelBox {
	GinkgoHelper()
	box := &modelv1.ModelBox{
		ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"},
		Spec:       modelv1.ModelBoxSpec{Image: "nginx:1"},
	}
	how(&box.Spec)
	Expect(env.Client.Create(ctx, box)).To(Succeed())
	return box
}

// get reads an object from the API server.
func get[T client.Object](ctx context.Context, obj T) T {
	GinkgoHelper()
	Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	return obj
}

// change reads an object, changes it and writes it, as kubectl edit does.
func change[T client.Object](ctx context.Context, obj T, how func(T)) {
	GinkgoHelper()
	Eventually(func() error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		how(obj)
		return env.Client.Update(ctx, obj)
	}).Should(Succeed())
}

// readiness returns a function that returns the status and reason of an object's Ready
// condition, such as "False NameConflict", and "not seen" if it is not for its generation.
func readiness(ctx context.Context, obj status.Object) func() string {
	return func() string {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err.Error()
		}
		ready := meta.FindStatusCondition(obj.GetConditions(), status.ConditionReady)
		if ready == nil || ready.ObservedGeneration != obj.GetGeneration() {
			return "not seen"
		}
		return string(ready.Status) + " " + ready.Reason
	}
}

// rollOut writes the status that the Deployment controller writes when all pods are available.
func rollOut(ctx context.Context, named metav1.ObjectMeta) {
	GinkgoHelper()
	writeDeploymentStatus(ctx, named, false, func(*appsv1.Deployment) {})
}

// rolledOut returns the conditions of a Deployment whose pods are available.
func rolledOut() []appsv1.DeploymentCondition {
	return []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable",
			Message: "Deployment has minimum availability.", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now()},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable",
			Message: "ReplicaSet has successfully progressed.", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now()},
	}
}

// writes counts the requests of the controller in a namespace since the mark, by verb and
// resource, and returns the next mark.
func writes(namespace string, mark int) (map[string]int, int) {
	GinkgoHelper()
	requests, err := env.Requests(controllerUser)
	Expect(err).NotTo(HaveOccurred())
	count := map[string]int{}
	for _, r := range requests[mark:] {
		if r.Namespace == namespace && r.Resource != "events" {
			count[r.String()]++
		}
	}
	return count, len(requests)
}

func describe(count map[string]int) string {
	var lines []string
	for request, n := range count {
		lines = append(lines, fmt.Sprintf("%d x %s", n, request))
	}
	return strings.Join(lines, ", ")
}

// reconcilerOf returns the reconciler of a kind, with a writer and a clock.
func reconcilerOf(kind string, writer apply.Writer, clk clock.PassiveClock) reconcile.Reconciler {
	looker := &problems.Diagnoser{Reader: writer.Live, Clock: clk}
	sources := &configuration.Sources{
		Metadata: writer.Live, Live: writer.Live, Clock: clk, Watch: func(context.Context, string) error { return nil },
	}
	steps := workload.Reconciler{Shared: workload.Shared{Clock: clk, Fetcher: modelFetcher}, Writer: writer, Problems: looker, Configuration: sources, Freeze: freeze.Reader{Live: writer.Live}}
	switch kind {
	case "ModelBox":
		return status.NewReconciler[*modelv1.ModelBox](writer.Client, writer.Recorder, &modelbox.Reconciler{Reconciler: steps}, status.Options{Clock: clk})
	case "UnitedDeployment":
		return status.NewReconciler(writer.Client, writer.Recorder, uniteddeployment.New(writer.Client, writer.Recorder, clk), status.Options{Clock: clk})
	case "Eru":
		return status.NewReconciler(writer.Client, writer.Recorder, &eru.Reconciler{Client: writer.Client, Recorder: writer.Recorder, Clock: clk}, status.Options{Clock: clk})
	case "App":
		return status.NewReconciler[*appv1.App](writer.Client, writer.Recorder, &app.Reconciler{Reconciler: steps}, status.Options{Clock: clk})
	}
	return status.NewReconciler[*mydomainv1beta1.Genericdaemon](writer.Client, writer.Recorder,
		&genericdaemon.Reconciler{Reconciler: steps}, status.Options{Clock: clk})
}

// reconcileWith reconciles an object with a client, as a process that has just started does.
func reconcileWith(ctx context.Context, c client.Client, obj client.Object) error {
	_, err := reconcilerOf(kindOf(obj), writerWith(c, c), clock.RealClock{}).Reconcile(ctx, requestFor(obj))
	return err
}

// writerWith returns a writer that discards its events.
func writerWith(c client.Client, live client.Reader) apply.Writer {
	return apply.Writer{Access: apply.Access{Client: cached{c}, Live: live}, Recorder: events.NewFakeRecorder(100)}
}

func requestFor(obj client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
}

// eventsOf returns the events about an object with this reason.
func eventsOf(ctx context.Context, obj client.Object, reason string) []eventsv1.Event {
	GinkgoHelper()
	list := &eventsv1.EventList{}
	Expect(env.Client.List(ctx, list, client.InNamespace(obj.GetNamespace()))).To(Succeed())
	var found []eventsv1.Event
	for _, event := range list.Items {
		if event.Regarding.UID == obj.GetUID() && event.Reason == reason {
			found = append(found, event)
		}
	}
	return found
}

// eventCount returns how often an object had events with this reason. A process counts the third
// of equal events, and those after it, only when there have been none for some minutes.
func eventCount(ctx context.Context, obj client.Object, reason string) int {
	GinkgoHelper()
	count := 0
	for _, event := range eventsOf(ctx, obj, reason) {
		count++
		if event.Series != nil {
			count += int(event.Series.Count) - 1
		}
	}
	return count
}

// disturb writes the status of a child of which a pod has become unavailable, by kind.
var disturb = map[string]func(ctx context.Context, named metav1.ObjectMeta){
	"ModelBox": disturbDeployment,
	"App":      disturbDeployment,
	"Genericdaemon": func(ctx context.Context, named metav1.ObjectMeta) {
		GinkgoHelper()
		writeDaemonStatus(ctx, named, func(s *appsv1.DaemonSet) { s.Status.NumberAvailable = 1 })
	},
}

func disturbDeployment(ctx context.Context, named metav1.ObjectMeta) {
	GinkgoHelper()
	writeDeploymentStatus(ctx, named, false, func(d *appsv1.Deployment) {
		d.Status.AvailableReplicas--
		d.Status.Conditions[0].Status, d.Status.Conditions[0].Reason = corev1.ConditionFalse, "MinimumReplicasUnavailable"
	})
}

// writeDeploymentStatus writes the status that the Deployment controller writes when all pods are
// available, changed by how. If the template is new, the Deployment has a new revision.
func writeDeploymentStatus(ctx context.Context, named metav1.ObjectMeta, newTemplate bool, how func(*appsv1.Deployment)) {
	GinkgoHelper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: named.Name}}
	Eventually(func() error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n, Conditions: rolledOut(),
		}
		if newTemplate {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, api.AnnotationRevision, d.Annotations[api.AnnotationRevision]+"1")
		}
		how(d)
		return env.Client.Status().Update(ctx, d)
	}).Should(Succeed())
}

func writeDaemonStatus(ctx context.Context, named metav1.ObjectMeta, how func(*appsv1.DaemonSet)) {
	GinkgoHelper()
	set := &appsv1.DaemonSet{ObjectMeta: named}
	Eventually(func() error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		set.Status = rolledOutOnTwoNodes(set.Generation)
		how(set)
		return env.Client.Status().Update(ctx, set)
	}).Should(Succeed())
}
