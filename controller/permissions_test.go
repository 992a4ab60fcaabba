// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// controllerNamespace is the namespace of the controller and of its lease.
const controllerNamespace = "modelbox-system"

var leaseName = metav1.ObjectMeta{Namespace: controllerNamespace, Name: "modelbox-controller"}

// checkedByAdmission are the permissions that no request in the audit log shows: when a child is
// created, the admission plugin OwnerReferencesPermissionEnforcement checks that the client
// may update the finalizers of the owner whose deletion the child blocks.
var checkedByAdmission = func() (out []testenv.Permission) {
	for _, kind := range all.Kinds {
		if resource := testenv.Resource(kind.GVK); kind.HasPods() {
			out = append(out, testenv.Permission{Group: resource.Group, Resource: resource.Resource + "/finalizers", Verb: "update"})
		}
	}
	return out
}()

// The scenario makes the controller use all of its functions, with the permissions that are
// shipped. It must succeed with all of them, use each of them, and fail without any of them.
var _ = Describe("the controller's permissions", Ordered, ContinueOnFailure, long, func() {
	shipped, err := testenv.Permissions("config/controller/generated/role.yaml", testenv.Every)
	if err != nil {
		panic(err) // Without permissions there is no spec that could report it.
	}
	BeforeAll(func() {
		alone()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controllerNamespace}}
		Expect(client.IgnoreAlreadyExists(env.Client.Create(context.Background(), namespace))).To(Succeed())
	})

	if thoroughly {
		It("are all that it needs, where the API server streams lists", func(ctx SpecContext) {
			_, err := runScenario(ctx, shipped)
			Expect(err).NotTo(HaveOccurred())
		})
	}

	Context("where the API server does not stream lists", func() {
		BeforeAll(func() {
			// API servers before 1.34, and those with the feature disabled, do not.
			clientfeaturestesting.SetFeatureDuringTest(GinkgoTB(), clientfeatures.WatchListClient, false)
		})

		It("are all that it needs, and it uses all of them", func(ctx SpecContext) {
			requests, err := runScenario(ctx, shipped)
			Expect(err).NotTo(HaveOccurred())
			unused, beyond := testenv.Compare(shipped, requests)
			Expect(unused).To(ConsistOf(checkedByAdmission), "the permissions that no request needed")
			Expect(beyond).To(BeEmpty(), "requests that no permission of the controller allows")
		})

		// A controller for each of them takes minutes. What no request needs, the spec above finds too.
		for i, permission := range shipped {
			if !thoroughly {
				break
			}
			It("include none that is not needed: "+permission.String(), func(ctx SpecContext) {
				_, err := runScenario(ctx, slices.Delete(slices.Clone(shipped), i, i+1), permission)
				Expect(err).To(HaveOccurred(), "all goes well without the permission to %s: it is not needed, remove its marker", permission)
				var refused *testenv.RefusedError
				Expect(errors.As(err, &refused)).To(BeTrue(), "%v", err)
				Expect(refused.Request).To(Satisfy(func(request testenv.Request) bool {
					return permission.Allows(request) || request.Verb == "create" && slices.Contains(checkedByAdmission, permission)
				}), "it is another permission that is missing")
			})
		}
	})
})

// runScenario runs the controller as a user with these permissions only, and the scenario, until a
// request is refused: then the error is a *RefusedError. It returns the controller's requests
// that are cluster-wide, in the scenario's namespace, or for its lease.
func runScenario(ctx context.Context, permissions []testenv.Permission, without ...testenv.Permission) ([]testenv.Request, error) {
	GinkgoHelper()
	// The name of the namespace is unique, so it is also in the name of the user.
	s := &scenario{namespace: newNamespace()}
	user := controllers + s.namespace
	DeferCleanup(s.clear)
	grant(ctx, user, permissions)
	controller := runAs(user)
	DeferCleanup(func() { _ = controller.end() })
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := env.UntilRefused(ctx, user, s.live)
	if len(without) > 0 {
		// A manager whose cache cannot sync does not end, either: see
		// https://github.com/kubernetes-sigs/controller-runtime/pull/3440.
		grant(ctx, user, without)
	}
	if ended := controller.end(); err == nil {
		err = cmp.Or(env.Refused(user), ended)
	}
	requests, readErr := env.Requests(user)
	Expect(readErr).NotTo(HaveOccurred())
	// This controller also has the objects of other specs in its cache.
	ours := []string{"", s.namespace, controllerNamespace}
	requests = slices.DeleteFunc(slices.Clone(requests), func(r testenv.Request) bool { return !slices.Contains(ours, r.Namespace) })
	return requests, err
}

// grant gives a user permissions until the spec ends.
func grant(ctx context.Context, user string, permissions []testenv.Permission) {
	GinkgoHelper()
	revoke, err := env.Grant(ctx, user, permissions)
	DeferCleanup(func() { Expect(revoke()).To(Succeed()) })
	Expect(err).NotTo(HaveOccurred())
}

// ahead is a clock that is two minutes fast. An Eru that restarts every minute has passed a
// scheduled time when it is created.
type ahead struct{}

func (ahead) Now() time.Time                  { return time.Now().Add(2 * time.Minute) }
func (ahead) Since(t time.Time) time.Duration { return ahead{}.Now().Sub(t) }

// runAs starts the controller with the default flags and leader election, as a user. Other
// flags may be set.
func runAs(user string, set ...func(*options)) *process {
	GinkgoHelper()
	cfg, err := env.User(user)
	Expect(err).NotTo(HaveOccurred())
	o := defaults()
	o.leaderNamespace = controllerNamespace
	for _, f := range set {
		f(&o)
	}
	return launchKinds(cfg, &o, ahead{})
}

// scenario has steps of users, and their expected results, in one namespace.
type scenario struct{ namespace string }

func (s *scenario) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

// live runs all steps at the same time; they do not depend on each other.
func (s *scenario) live(ctx context.Context) error {
	acts := map[string]func(context.Context) error{
		"a ModelBox comes and changes": s.box, "the pods of another one fail": s.pods, "its Service is meddled with": s.childEdits, "an App comes": s.app, "its configuration changes": s.configuration,
		"a change waits for a window":       s.held,
		"a Genericdaemon comes and changes": s.daemon, "a UnitedDeployment yields to an autoscaler": s.united,
		"a budget comes, changes and goes": s.disruption, "an autoscaler comes, changes and goes": s.autoscaling,
		"an Eru restarts": s.eru, "a Deployment is annotated for an Eru": s.binding, "the lease is held": s.lease,
	}
	ends := make(chan error, len(acts))
	for name, act := range acts {
		go func() {
			err := act(ctx)
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			ends <- err
		}()
	}
	var errs []error
	for range acts {
		errs = append(errs, <-ends)
	}
	return errors.Join(errs...)
}

func (s *scenario) box(ctx context.Context) error {
	box := &modelv1.ModelBox{ObjectMeta: s.named("box"), Spec: modelv1.ModelBoxSpec{Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}}, Schedules: yearly(2)}}
	deployment, service := &appsv1.Deployment{ObjectMeta: box.ObjectMeta}, &corev1.Service{ObjectMeta: box.ObjectMeta}
	return inOrder(
		func() error { return env.Client.Create(ctx, box) },
		func() error { return becomes(ctx, box, "False Progressing") },
		func() error {
			return edit(ctx, box, func() { box.Spec.Image, box.Spec.Ports[0].Port = "nginx:2", 81 })
		},
		func() error {
			return seen(ctx, deployment, func() bool { return deployment.Spec.Template.Spec.Containers[0].Image == "nginx:2" })
		},
		func() error { return seen(ctx, service, func() bool { return service.Spec.Ports[0].Port == 81 }) },
		func() error { return seen(ctx, box, func() bool { return *box.Spec.Replicas == 2 }) },
		func() error { return comesAgain(ctx, deployment) },
		func() error { return edit(ctx, box, func() { box.Spec.Image, box.Spec.Ports = "nginx:3", nil }) },
		func() error {
			return seen(ctx, deployment, func() bool { return deployment.Spec.Template.Spec.Containers[0].Image == "nginx:3" })
		},
		func() error { return gone(ctx, service) },
	)
}

// pods creates a ModelBox whose pods are not created. After 15 seconds, its message says more.
func (s *scenario) pods(ctx context.Context) error {
	box := &modelv1.ModelBox{ObjectMeta: s.named("refused"), Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
	deployment := &appsv1.Deployment{ObjectMeta: box.ObjectMeta}
	return inOrder(
		func() error { return env.Client.Create(ctx, box) },
		func() error { return seen(ctx, deployment, func() bool { return deployment.Generation > 0 }) },
		func() error {
			deployment.Status.ObservedGeneration = deployment.Generation
			deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "a quota"}}
			return env.Client.Status().Update(ctx, deployment)
		},
		func() error { return seen(ctx, box, func() bool { return len(box.Status.Problems) > 0 }) },
	)
}

// childEdits modifies a Service until its repairs are one event in a series.
func (s *scenario) childEdits(ctx context.Context) error {
	box := &modelv1.ModelBox{ObjectMeta: s.named("meddled"), Spec: modelv1.ModelBoxSpec{Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}}}}
	service, list := &corev1.Service{ObjectMeta: box.ObjectMeta}, &eventsv1.EventList{}
	repeated := func(event eventsv1.Event) bool {
		return event.Reason == "Repaired" && event.Regarding.Name == box.Name && event.Series != nil
	}
	return inOrder(
		func() error { return env.Client.Create(ctx, box) },
		func() error { return becomes(ctx, box, "False Progressing") },
		func() error {
			return until(ctx, func() (bool, error) {
				err := inOrder(
					func() error { return edit(ctx, service, func() { service.Labels = nil }) },
					func() error { return seen(ctx, service, func() bool { return len(service.Labels) > 0 }) },
					func() error { return env.Client.List(ctx, list, client.InNamespace(s.namespace)) },
				)
				return slices.ContainsFunc(list.Items, repeated), err
			})
		},
	)
}

func (s *scenario) app(ctx context.Context) error {
	app := &appv1.App{ObjectMeta: s.named("app"), Spec: appv1.AppSpec{Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}}, Schedules: yearly(2)}}
	return inOrder(
		func() error { return env.Client.Create(ctx, app) },
		func() error { return seen(ctx, app, func() bool { return *app.Spec.Replicas == 2 }) },
		func() error { return becomes(ctx, app, "False Progressing") },
		func() error { return comesAgain(ctx, &appsv1.Deployment{ObjectMeta: app.ObjectMeta}) },
	)
}

func (s *scenario) disruption(ctx context.Context) error {
	app := &appv1.App{ObjectMeta: s.named("kept"), Spec: appv1.AppSpec{Image: "nginx:1", Replicas: new(int32(2))}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: app.ObjectMeta}
	app.Spec.Disruption = &modelv1.Disruption{MaxUnavailable: new(intstr.FromInt32(1))}
	return inOrder(
		func() error { return env.Client.Create(ctx, app) },
		func() error { return seen(ctx, budget, func() bool { return budget.Spec.MaxUnavailable.IntVal == 1 }) },
		func() error { return edit(ctx, app, func() { app.Spec.Disruption.MaxUnavailable.IntVal = 2 }) },
		func() error { return seen(ctx, budget, func() bool { return budget.Spec.MaxUnavailable.IntVal == 2 }) },
		func() error { return edit(ctx, app, func() { app.Spec.Disruption = nil }) },
		func() error { return gone(ctx, budget) },
	)
}

func (s *scenario) autoscaling(ctx context.Context) error {
	app := &appv1.App{ObjectMeta: s.named("scaled"), Spec: appv1.AppSpec{Image: "nginx:1"}}
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: app.ObjectMeta}
	app.Spec.Autoscaling = &modelv1.Autoscaling{MaxReplicas: 3}
	return inOrder(
		func() error { return env.Client.Create(ctx, app) },
		func() error { return seen(ctx, scaler, func() bool { return scaler.Spec.MaxReplicas == 3 }) },
		func() error { return edit(ctx, app, func() { app.Spec.Autoscaling.MaxReplicas = 4 }) },
		func() error { return seen(ctx, scaler, func() bool { return scaler.Spec.MaxReplicas == 4 }) },
		func() error { return edit(ctx, app, func() { app.Spec.Autoscaling = nil }) },
		func() error { return gone(ctx, scaler) },
	)
}

func (s *scenario) configuration(ctx context.Context) error {
	app, settings := configured(s.named("configured"), "settings"), configMap(s.namespace, "settings", "1")
	deployment := &appsv1.Deployment{ObjectMeta: app.ObjectMeta}
	annotation := func() string { return deployment.Spec.Template.Annotations[api.AnnotationConfiguration] }
	var before string
	return inOrder(
		func() error { return env.Client.Create(ctx, settings) },
		func() error { return env.Client.Create(ctx, app) },
		func() error { return seen(ctx, deployment, func() bool { return strings.Contains(annotation(), " ") }) },
		func() error {
			before = annotation()
			return edit(ctx, settings, func() { settings.Data["key"] = "2" })
		},
		func() error { return seen(ctx, deployment, func() bool { return annotation() != before }) },
	)
}

func (s *scenario) held(ctx context.Context) error {
	app := &appv1.App{ObjectMeta: s.named("held"), Spec: appv1.AppSpec{
		Image: "nginx:1", HoldChanges: modelv1.HoldChangesAll, Windows: windowAt(time.Now().AddDate(0, 6, 0)),
	}}
	deployment := &appsv1.Deployment{ObjectMeta: app.ObjectMeta}
	return inOrder(
		func() error { return env.Client.Create(ctx, app) },
		func() error { return becomes(ctx, app, "False Progressing") },
		func() error { return edit(ctx, app, func() { app.Spec.Image = "nginx:2" }) },
		func() error { return seen(ctx, app, func() bool { return app.Status.KeptTemplate != "" }) },
		func() error { return edit(ctx, app, func() { app.Spec.Replicas = new(int32(3)) }) },
		func() error { return seen(ctx, deployment, func() bool { return *deployment.Spec.Replicas == 3 }) },
		func() error { return edit(ctx, app, func() { app.Spec.Windows = modelv1.Windows{} }) },
		func() error {
			return seen(ctx, deployment, func() bool { return deployment.Spec.Template.Spec.Containers[0].Image == "nginx:2" })
		},
		func() error { return seen(ctx, app, func() bool { return app.Status.KeptTemplate == "" }) },
	)
}

func (s *scenario) daemon(ctx context.Context) error {
	daemon := &mydomainv1beta1.Genericdaemon{ObjectMeta: s.named("syslog"), Spec: mydomainv1beta1.GenericdaemonSpec{Label: "logs", Image: "syslog:1"}}
	set := &appsv1.DaemonSet{ObjectMeta: daemon.ObjectMeta}
	return inOrder(
		func() error { return env.Client.Create(ctx, daemon) },
		func() error { return becomes(ctx, daemon, "False Progressing") },
		func() error { return edit(ctx, daemon, func() { daemon.Spec.Image = "syslog:2" }) },
		func() error {
			return seen(ctx, set, func() bool { return set.Spec.Template.Spec.Containers[0].Image == "syslog:2" })
		},
		func() error { return comesAgain(ctx, set) },
		func() error {
			set.Status = appsv1.DaemonSetStatus{ObservedGeneration: set.Generation, DesiredNumberScheduled: 1}
			return env.Client.Status().Update(ctx, set)
		},
		func() error { return seen(ctx, daemon, func() bool { return len(daemon.Status.Problems) > 0 }) },
	)
}

func (s *scenario) united(ctx context.Context) error {
	target := foreignDeployment(s.named("web")).(*appsv1.Deployment)
	ud := united(target.ObjectMeta, "holder", 3)
	ud.Spec.Schedules = yearly(2)
	scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: target.ObjectMeta, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxReplicas: 3,
	}}
	return inOrder(
		func() error { return env.Client.Create(ctx, target) },
		func() error { return env.Client.Create(ctx, ud) },
		func() error { return seen(ctx, target, func() bool { return *target.Spec.Replicas == 2 }) },
		func() error { return env.Client.Create(ctx, scaler) },
		func() error { return becomes(ctx, ud, "False Conflict") },
	)
}

func (s *scenario) eru(ctx context.Context) error {
	target := foreignDeployment(s.named("old")).(*appsv1.Deployment)
	eru := &mtsrev1.Eru{ObjectMeta: target.ObjectMeta, Spec: mtsrev1.EruSpec{Enabled: true, Schedule: "* * * * *"}}
	return inOrder(
		func() error { return env.Client.Create(ctx, target) },
		func() error {
			target.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
			return env.Client.Status().Update(ctx, target)
		},
		func() error { return env.Client.Create(ctx, eru) },
		func() error {
			return seen(ctx, target, func() bool { return target.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] != "" })
		},
		func() error { return seen(ctx, eru, func() bool { return len(eru.Status.History) > 0 }) },
	)
}

func (s *scenario) binding(ctx context.Context) error {
	target := foreignDeployment(s.named("annotated"))
	target.SetAnnotations(map[string]string{mtsrev1.AnnotationEru: "true"})
	eru := &mtsrev1.Eru{ObjectMeta: s.named("annotated")}
	return inOrder(
		func() error { return env.Client.Create(ctx, target) },
		func() error { return becomes(ctx, eru, "True Disabled") },
	)
}

// lease waits until the lease was renewed.
func (s *scenario) lease(ctx context.Context) error {
	lease := &coordinationv1.Lease{ObjectMeta: leaseName}
	return seen(ctx, lease, func() bool { return lease.Spec.RenewTime.After(lease.Spec.AcquireTime.Time) })
}

// clear deletes the objects, which later controllers would reconcile, and the lease, so that
// the next scenario creates it.
func (s *scenario) clear() {
	GinkgoHelper()
	ctx := context.Background()
	removeAll(ctx, s.namespace)
	Expect(client.IgnoreNotFound(env.Client.Delete(ctx, &coordinationv1.Lease{ObjectMeta: leaseName}))).To(Succeed())
}

// gone waits until an object does not exist.
func gone(ctx context.Context, obj client.Object) error {
	return until(ctx, func() (bool, error) {
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}

// inOrder runs steps until one fails.
func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// until waits for a condition, until its context ends, which a refused request ends.
func until(ctx context.Context, done func() (bool, error)) error {
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) { return done() })
}

// seen waits until an object exists and meets a condition.
func seen(ctx context.Context, obj client.Object, so func() bool) error {
	return until(ctx, func() (bool, error) {
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return err == nil && so(), client.IgnoreNotFound(err)
	})
}

// comesAgain deletes a child and waits until it is created again.
func comesAgain(ctx context.Context, child client.Object) error {
	if err := env.Client.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
		return err
	}
	was := child.GetUID()
	if err := env.Client.Delete(ctx, child); err != nil {
		return err
	}
	return seen(ctx, child, func() bool { return child.GetUID() != was })
}

// becomes waits until an object has a readiness.
func becomes(ctx context.Context, obj status.Object, want string) error {
	return until(ctx, func() (bool, error) { return readiness(ctx, obj)() == want, nil })
}

// edit is like change, and returns an error.
func edit(ctx context.Context, obj client.Object, how func()) error {
	return until(ctx, func() (bool, error) {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		how()
		err := env.Client.Update(ctx, obj)
		return err == nil, client.IgnoreNotFound(ignoreConflict(err))
	})
}

func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
