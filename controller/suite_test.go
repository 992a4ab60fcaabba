// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/format"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

var (
	env *testenv.Env
	// asController is the user of the controller, so that the audit log distinguishes its
	// requests from those of the tests.
	asController *rest.Config
	running      *process
	// models are the flags of the container that fetches models, of each controller.
	models = modelsource.Fetcher{Image: "modelbox-controller:v1"}
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

// process is the controller process, as main runs it, without its flags.
type process struct {
	cancel context.CancelFunc
	done   chan error
	cache  cache.Cache
}

// start starts the controller process and waits until its caches have synced.
func start() {
	GinkgoHelper()
	o := options{metricsAddress: "0", probeAddress: "0", pprofAddress: "0", workers: 4, fetcher: models}
	mgr := newManager(asController, &o)
	Expect(addControllersAndProbes(mgr, &o)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	running = &process{cancel: cancel, done: make(chan error, 1), cache: mgr.GetCache()}
	go func(p *process) { p.done <- mgr.Start(ctx) }(running)
	Eventually(mgr.Elected()).Should(BeClosed())
	Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
}

func stop() {
	GinkgoHelper()
	running.cancel()
	Eventually(running.done).Should(Receive(BeNil()))
}

// waitUntilCached waits until the controller's cache has an object. The watches of two kinds are
// independent: the event of an object that was created later may come earlier.
func waitUntilCached(ctx context.Context, obj client.Object) {
	GinkgoHelper()
	seen := obj.DeepCopyObject().(client.Object)
	Eventually(func() error { return running.cache.Get(ctx, client.ObjectKeyFromObject(obj), seen) }).Should(Succeed())
}

// newNamespace creates a namespace for one spec.
func newNamespace() string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(env.Client.Create(context.Background(), ns)).To(Succeed())
	return ns.Name
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
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: named.Name}}
	Eventually(func() error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			Conditions: rolledOut(),
		}
		return env.Client.Status().Update(ctx, d)
	}).Should(Succeed())
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
