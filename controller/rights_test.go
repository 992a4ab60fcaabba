// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// controllerNamespace is where the controller runs and has its lease.
const controllerNamespace = "modelbox-system"

var leaseName = metav1.ObjectMeta{Namespace: controllerNamespace, Name: "modelbox-controller"}

// checkedByAdmission are the rights that the audit log shows in no request: when a
// child is created, OwnerReferencesPermissionEnforcement asks whether its creator
// may update the finalizers of the owner that the child blocks the deletion of.
var checkedByAdmission = []testenv.Right{
	{Group: modelv1.GroupName, Resource: "modelboxes/finalizers", Verb: "update"},
	{Group: appv1.GroupName, Resource: "apps/finalizers", Verb: "update"},
	{Group: mydomainv1beta1.GroupName, Resource: "genericdaemons/finalizers", Verb: "update"},
}

// The story makes the controller do all that it can do, under the rights that are
// shipped. It must go well with all of them, use each, and fail without any one.
var _ = Describe("the controller's rights", Serial, Ordered, ContinueOnFailure, func() {
	shipped, err := testenv.Rights("config/controller/generated/role.yaml", testenv.Every)
	if err != nil {
		panic(err) // Without rights there is no row to report it in.
	}
	BeforeAll(func() {
		stop() // Nobody else is to do what a story waits for.
		DeferCleanup(start)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controllerNamespace}}
		Expect(client.IgnoreAlreadyExists(env.Client.Create(context.Background(), namespace))).To(Succeed())
	})

	It("are all that it needs, where the API server streams lists", func(ctx SpecContext) {
		_, err := tell(ctx, shipped)
		Expect(err).NotTo(HaveOccurred())
	})

	Context("where the API server does not stream lists", func() {
		BeforeAll(func() {
			// Those before 1.34 do not, nor do those that have the feature turned off.
			clientfeaturestesting.SetFeatureDuringTest(GinkgoTB(), clientfeatures.WatchListClient, false)
		})

		It("are all that it needs, and it uses all of them", func(ctx SpecContext) {
			requests, err := tell(ctx, shipped)
			Expect(err).NotTo(HaveOccurred())
			unused, beyond := testenv.Compare(shipped, requests)
			Expect(unused).To(ConsistOf(checkedByAdmission), "the rights that no request needed")
			Expect(beyond).To(BeEmpty(), "requests that go by a right of somebody else")
		})

		for i, right := range shipped {
			It("include no right that is not needed: "+right.String(), func(ctx SpecContext) {
				_, err := tell(ctx, slices.Delete(slices.Clone(shipped), i, i+1), right)
				Expect(err).To(HaveOccurred(), "all goes well without the right to %s: it is not needed, remove its marker", right)
				var refused *testenv.RefusedError
				Expect(errors.As(err, &refused)).To(BeTrue(), "%v", err)
				Expect(refused.Request).To(Satisfy(func(request testenv.Request) bool {
					return right.Allows(request) || request.Verb == "create" && slices.Contains(checkedByAdmission, right)
				}), "it is another right that is missing")
			})
		}
	})
})

// tell runs the controller as a user of these rights alone and lives through the
// story, until a request is refused: then the error is a *RefusedError. It returns
// what the controller asked for cluster-wide, for the story and for its lease.
func tell(ctx context.Context, rights []testenv.Right, without ...testenv.Right) ([]testenv.Request, error) {
	GinkgoHelper()
	// The namespace's name is new, so it does for a user as well.
	s := &story{namespace: newNamespace()}
	user := s.namespace
	DeferCleanup(s.clear)
	grant(ctx, user, rights)
	end := runAs(user)
	DeferCleanup(func() { _ = end() })
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := env.UntilRefused(ctx, user, s.live)
	if len(without) > 0 {
		// A manager whose cache cannot sync does not end, either: see
		// https://github.com/kubernetes-sigs/controller-runtime/pull/3440.
		grant(ctx, user, without)
	}
	if ended := end(); err == nil {
		err = cmp.Or(env.Refused(user), ended)
	}
	requests, readErr := env.Requests(user)
	Expect(readErr).NotTo(HaveOccurred())
	// The objects of other specs are seen by this controller too.
	ours := []string{"", s.namespace, controllerNamespace}
	requests = slices.DeleteFunc(slices.Clone(requests), func(r testenv.Request) bool { return !slices.Contains(ours, r.Namespace) })
	return requests, err
}

// grant gives a user rights until the spec ends.
func grant(ctx context.Context, user string, rights []testenv.Right) {
	GinkgoHelper()
	revoke, err := env.Grant(ctx, user, rights)
	DeferCleanup(func() { Expect(revoke()).To(Succeed()) })
	Expect(err).NotTo(HaveOccurred())
}

// ahead is a clock that goes two minutes fast. An Eru of every minute has a slot
// that has come as soon as it is created.
type ahead struct{}

func (ahead) Now() time.Time                  { return time.Now().Add(2 * time.Minute) }
func (ahead) Since(t time.Time) time.Duration { return ahead{}.Now().Sub(t) }

// runAs starts the controller as it is shipped, elected by a lease, as a user.
// What it returns ends it and tells what it died of.
func runAs(user string) (end func() error) {
	GinkgoHelper()
	cfg, err := env.User(user)
	Expect(err).NotTo(HaveOccurred())
	var o options
	o.bind(flag.NewFlagSet("", flag.PanicOnError))
	o.metricsAddress, o.probeAddress, o.leaderNamespace = "0", "0", controllerNamespace
	mgr := newManager(cfg, o)
	for _, add := range kinds {
		Expect(add(mgr, ahead{})).To(Succeed())
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(time.Minute):
			return errors.New("the controller does not end")
		}
	})
}

// story is what users do, and what must come of it, in one namespace.
type story struct{ namespace string }

func (s *story) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

// live lives through all acts, which know nothing of each other, at the same time.
func (s *story) live(ctx context.Context) error {
	acts := map[string]func(context.Context) error{
		"a ModelBox comes and changes": s.box, "its Service is meddled with": s.meddling, "an App comes": s.app,
		"a Genericdaemon comes and changes": s.daemon, "a UnitedDeployment yields to an autoscaler": s.united,
		"an Eru restarts": s.eru, "a Deployment asks for an Eru": s.binding, "the lease is held": s.lease,
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

func (s *story) box(ctx context.Context) error {
	box := &modelv1.ModelBox{ObjectMeta: s.named("box"), Spec: modelv1.ModelBoxSpec{Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}}}}
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
		func() error { return comesAgain(ctx, deployment) },
		func() error { return edit(ctx, box, func() { box.Spec.Image, box.Spec.Ports = "nginx:3", nil }) },
		func() error {
			return seen(ctx, deployment, func() bool { return deployment.Spec.Template.Spec.Containers[0].Image == "nginx:3" })
		},
		func() error {
			return until(ctx, func() (bool, error) {
				err := env.Client.Get(ctx, client.ObjectKeyFromObject(service), service)
				return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
			})
		},
	)
}

// meddling changes a Service until its repairs are one event that is repeated.
func (s *story) meddling(ctx context.Context) error {
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

func (s *story) app(ctx context.Context) error {
	app := &appv1.App{ObjectMeta: s.named("app"), Spec: appv1.AppSpec{Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}}}}
	return inOrder(
		func() error { return env.Client.Create(ctx, app) },
		func() error { return becomes(ctx, app, "False Progressing") },
		func() error { return comesAgain(ctx, &appsv1.Deployment{ObjectMeta: app.ObjectMeta}) },
	)
}

func (s *story) daemon(ctx context.Context) error {
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
	)
}

func (s *story) united(ctx context.Context) error {
	target := foreignDeployment(s.named("web")).(*appsv1.Deployment)
	ud := united(target.ObjectMeta, "holder", 2)
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

func (s *story) eru(ctx context.Context) error {
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

func (s *story) binding(ctx context.Context) error {
	target := foreignDeployment(s.named("annotated"))
	target.SetAnnotations(map[string]string{mtsrev1.AnnotationEru: "true"})
	eru := &mtsrev1.Eru{ObjectMeta: s.named("annotated")}
	return inOrder(
		func() error { return env.Client.Create(ctx, target) },
		func() error { return becomes(ctx, eru, "True Disabled") },
	)
}

// lease waits until the lease was renewed and its new holder told of.
func (s *story) lease(ctx context.Context) error {
	lease, list := &coordinationv1.Lease{ObjectMeta: leaseName}, &corev1.EventList{}
	return inOrder(
		func() error {
			return seen(ctx, lease, func() bool { return lease.Spec.RenewTime.After(lease.Spec.AcquireTime.Time) })
		},
		func() error {
			return until(ctx, func() (bool, error) {
				err := env.Client.List(ctx, list, client.InNamespace(controllerNamespace))
				return slices.ContainsFunc(list.Items, func(event corev1.Event) bool {
					return strings.HasPrefix(event.Message, *lease.Spec.HolderIdentity)
				}), err
			})
		},
	)
}

// clear removes what would keep later controllers busy, and the lease, so that the
// next story creates it.
func (s *story) clear() {
	GinkgoHelper()
	ctx := context.Background()
	for _, kind := range []client.Object{
		&modelv1.ModelBox{}, &appv1.App{}, &mydomainv1beta1.Genericdaemon{}, &extensionv1.UnitedDeployment{}, &mtsrev1.Eru{},
		&autoscalingv2.HorizontalPodAutoscaler{}, &appsv1.Deployment{}, &appsv1.DaemonSet{}, &corev1.Service{},
	} {
		Expect(env.Client.DeleteAllOf(ctx, kind, client.InNamespace(s.namespace))).To(Succeed())
	}
	Expect(client.IgnoreNotFound(env.Client.Delete(ctx, &coordinationv1.Lease{ObjectMeta: leaseName}))).To(Succeed())
}

// inOrder takes steps until one fails.
func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// until waits for something. It ends with its context, which a refusal ends.
func until(ctx context.Context, done func() (bool, error)) error {
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) { return done() })
}

// seen waits until an object is there and looks so.
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

// becomes waits for an object's verdict.
func becomes(ctx context.Context, obj status.Object, want string) error {
	return until(ctx, func() (bool, error) { return verdict(ctx, obj)() == want, nil })
}

// edit is change for a story.
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
