// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// faultWorkload is what a user does while a fault happens.
type faultWorkload struct {
	name string
	// prepare creates the objects that exist before the fault, and waits until they are
	// reconciled.
	prepare func(*workloadRun)
	// edit is the change by the user.
	edit func(*workloadRun)
	// poke causes an event on another kind, after the scheduled time of Erus.
	poke func(*workloadRun)
	// changes are the expected numbers of events of children and targets.
	changes map[string]int
}

// workloadRun is one run of a workload, in a namespace of its own.
type workloadRun struct {
	ctx       context.Context // It is the spec's.
	namespace string
	// slot is a schedule with one scheduled time a year, which the clock passes before poke.
	slot string
}

func (s *workloadRun) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

func (s *workloadRun) create(objects ...client.Object) {
	GinkgoHelper()
	for _, obj := range objects {
		Expect(env.Client.Create(s.ctx, obj)).To(Succeed())
	}
}

// delete deletes an object; the observer deletes its children.
func (s *workloadRun) delete(obj client.Object) {
	GinkgoHelper()
	Expect(env.Client.Delete(s.ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
}

// reconciled waits until the status of an object is for its current generation.
func (s *workloadRun) reconciled(obj status.Object, ready string) {
	GinkgoHelper()
	Eventually(readiness(s.ctx, obj)).Should(Equal(ready))
}

func (s *workloadRun) box() *modelv1.ModelBox {
	return &modelv1.ModelBox{ObjectMeta: s.named("box"), Spec: modelv1.ModelBoxSpec{
		Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}}, Envs: []corev1.EnvVar{{Name: "A", Value: "1"}},
	}}
}

func (s *workloadRun) makeBox() {
	box := s.box()
	s.create(box)
	s.reconciled(box, "False Progressing")
}

func (s *workloadRun) app() *appv1.App {
	return &appv1.App{ObjectMeta: s.named("app"), Spec: appv1.AppSpec{Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}}}}
}

func (s *workloadRun) makeApp() {
	app := s.app()
	s.create(app)
	s.reconciled(app, "False Progressing")
}

func (s *workloadRun) daemon() *mydomainv1beta1.Genericdaemon {
	return &mydomainv1beta1.Genericdaemon{ObjectMeta: s.named("daemon"), Spec: mydomainv1beta1.GenericdaemonSpec{Image: "syslog:1", Label: "logs"}}
}

func (s *workloadRun) makeDaemon() {
	daemon := s.daemon()
	s.create(daemon)
	Eventually(readiness(s.ctx, daemon)).ShouldNot(Equal("not seen"))
}

// target creates a Deployment that the controller does not own, and rolls it out.
func (s *workloadRun) target(annotations map[string]string) {
	GinkgoHelper()
	d := foreignDeployment(s.named("web"))
	d.SetAnnotations(annotations)
	s.create(d)
	rollOut(s.ctx, s.named("web"))
}

func (s *workloadRun) united(replicas int32) *extensionv1.UnitedDeployment {
	return &extensionv1.UnitedDeployment{ObjectMeta: s.named("united"), Spec: extensionv1.UnitedDeploymentSpec{DeploymentName: "web", Replicas: &replicas}}
}

func (s *workloadRun) makeUnited() {
	s.target(nil)
	united, web := s.united(3), &appsv1.Deployment{ObjectMeta: s.named("web")}
	s.create(united)
	Eventually(func() int32 { return *get(s.ctx, web).Spec.Replicas }).Should(BeEquivalentTo(3))
	rollOut(s.ctx, s.named("web"))
	s.reconciled(united, "True Ready")
}

func (s *workloadRun) eru() *mtsrev1.Eru {
	return &mtsrev1.Eru{ObjectMeta: s.named("eru"), Spec: mtsrev1.EruSpec{DeploymentName: "web", Enabled: true, Schedule: s.slot}}
}

func (s *workloadRun) makeEru() {
	s.target(nil)
	eru := s.eru()
	s.create(eru)
	s.reconciled(eru, "True Scheduled")
}

var asksForEru = map[string]string{mtsrev1.AnnotationEru: "true"}

func (s *workloadRun) makeBound() {
	s.target(asksForEru)
	s.reconciled(&mtsrev1.Eru{ObjectMeta: s.named("web")}, "True Disabled")
}

// touch causes an event on the target without a relevant change.
func (s *workloadRun) touch() {
	GinkgoHelper()
	change(s.ctx, &appsv1.Deployment{ObjectMeta: s.named("web")}, func(d *appsv1.Deployment) { d.Labels = map[string]string{"touched": "yes"} })
}

var faultWorkloads = []faultWorkload{
	{
		name:    "modelbox-created",
		edit:    func(s *workloadRun) { s.create(s.box()) },
		changes: map[string]int{"create Deployment box": 1, "create Service box": 1},
	}, {
		name: "modelbox-changed", prepare: (*workloadRun).makeBox,
		edit: func(s *workloadRun) {
			change(s.ctx, s.box(), func(b *modelv1.ModelBox) { b.Spec.Image, b.Spec.Envs, b.Spec.Replicas = "nginx:2", nil, new(int32(4)) })
		},
		changes: map[string]int{"create Deployment box": 1, "create Service box": 1, "rollout Deployment box": 1, "scale Deployment box": 1},
	}, {
		name: "modelbox-ports-gone", prepare: (*workloadRun).makeBox,
		edit:    func(s *workloadRun) { change(s.ctx, s.box(), func(b *modelv1.ModelBox) { b.Spec.Ports = nil }) },
		changes: map[string]int{"create Deployment box": 1, "create Service box": 1, "rollout Deployment box": 1, "delete Service box": 1},
	}, {
		name: "modelbox-child-changed", prepare: (*workloadRun).makeBox,
		edit: func(s *workloadRun) {
			change(s.ctx, &appsv1.Deployment{ObjectMeta: s.named("box")}, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "other:1" })
		},
		changes: map[string]int{"create Deployment box": 1, "create Service box": 1, "rollout Deployment box": 2},
	}, {
		name: "modelbox-child-deleted", prepare: (*workloadRun).makeBox,
		edit:    func(s *workloadRun) { s.delete(&appsv1.Deployment{ObjectMeta: s.named("box")}) },
		changes: map[string]int{"create Deployment box": 2, "create Service box": 1, "delete Deployment box": 1},
	}, {
		name: "modelbox-deleted", prepare: (*workloadRun).makeBox,
		edit:    func(s *workloadRun) { s.delete(s.box()) },
		changes: map[string]int{"create Deployment box": 1, "create Service box": 1, "delete Deployment box": 1, "delete Service box": 1},
	}, {
		name: "modelbox-recreated", prepare: (*workloadRun).makeBox,
		edit: func(s *workloadRun) {
			s.delete(s.box())
			again := s.box()
			again.Spec.Image, again.Spec.Ports = "nginx:3", nil
			s.create(again)
		},
		changes: map[string]int{"create Deployment box": 2, "create Service box": 1, "delete Deployment box": 1, "delete Service box": 1},
	}, {
		name:    "app-created",
		edit:    func(s *workloadRun) { s.create(s.app()) },
		changes: map[string]int{"create Deployment app": 1, "create Service app": 1},
	}, {
		name: "app-changed", prepare: (*workloadRun).makeApp,
		edit: func(s *workloadRun) {
			change(s.ctx, s.app(), func(a *appv1.App) { a.Spec.Image, a.Spec.Ports = "nginx:2", nil })
		},
		changes: map[string]int{"create Deployment app": 1, "create Service app": 1, "rollout Deployment app": 1, "delete Service app": 1},
	}, {
		name: "app-child-deleted", prepare: (*workloadRun).makeApp,
		edit:    func(s *workloadRun) { s.delete(&corev1.Service{ObjectMeta: s.named("app")}) },
		changes: map[string]int{"create Deployment app": 1, "create Service app": 2, "delete Service app": 1},
	}, {
		name: "app-deleted", prepare: (*workloadRun).makeApp,
		edit:    func(s *workloadRun) { s.delete(s.app()) },
		changes: map[string]int{"create Deployment app": 1, "create Service app": 1, "delete Deployment app": 1, "delete Service app": 1},
	}, {
		name:    "daemon-created",
		edit:    func(s *workloadRun) { s.create(s.daemon()) },
		changes: map[string]int{"create DaemonSet daemon": 1},
	}, {
		name: "daemon-changed", prepare: (*workloadRun).makeDaemon,
		edit: func(s *workloadRun) {
			change(s.ctx, s.daemon(), func(d *mydomainv1beta1.Genericdaemon) { d.Spec.Image = "syslog:2" })
		},
		changes: map[string]int{"create DaemonSet daemon": 1, "rollout DaemonSet daemon": 1},
	}, {
		name: "daemon-child-changed", prepare: (*workloadRun).makeDaemon,
		edit: func(s *workloadRun) {
			change(s.ctx, &appsv1.DaemonSet{ObjectMeta: s.named("daemon")}, func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0].Image = "other:1" })
		},
		changes: map[string]int{"create DaemonSet daemon": 1, "rollout DaemonSet daemon": 2},
	}, {
		name: "daemon-deleted", prepare: (*workloadRun).makeDaemon,
		edit:    func(s *workloadRun) { s.delete(s.daemon()) },
		changes: map[string]int{"create DaemonSet daemon": 1, "delete DaemonSet daemon": 1},
	}, {
		name: "daemon-recreated", prepare: (*workloadRun).makeDaemon,
		edit: func(s *workloadRun) {
			s.delete(s.daemon())
			s.create(s.daemon())
		},
		changes: map[string]int{"create DaemonSet daemon": 2, "delete DaemonSet daemon": 1},
	}, {
		name: "united-scaled", prepare: (*workloadRun).makeUnited,
		edit: func(s *workloadRun) {
			change(s.ctx, s.united(3), func(u *extensionv1.UnitedDeployment) { u.Spec.Replicas = new(int32(5)) })
		},
		changes: map[string]int{"create Deployment web": 1, "scale Deployment web": 2},
	}, {
		name: "united-target-scaled", prepare: (*workloadRun).makeUnited,
		edit: func(s *workloadRun) {
			change(s.ctx, &appsv1.Deployment{ObjectMeta: s.named("web")}, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(1)) })
		},
		changes: map[string]int{"create Deployment web": 1, "scale Deployment web": 3},
	}, {
		name: "united-deleted", prepare: (*workloadRun).makeUnited,
		edit:    func(s *workloadRun) { s.delete(s.united(3)) },
		poke:    (*workloadRun).touch,
		changes: map[string]int{"create Deployment web": 1, "scale Deployment web": 1},
	}, {
		name: "eru-restarts", prepare: (*workloadRun).makeEru,
		poke:    (*workloadRun).touch,
		changes: map[string]int{"create Deployment web": 1, "rollout Deployment web": 1},
	}, {
		name: "eru-disabled", prepare: (*workloadRun).makeEru,
		edit: func(s *workloadRun) {
			change(s.ctx, s.eru(), func(e *mtsrev1.Eru) { e.Spec.Enabled = false })
		},
		poke:    (*workloadRun).touch,
		changes: map[string]int{"create Deployment web": 1},
	}, {
		name:    "deployment-bound",
		edit:    func(s *workloadRun) { s.target(asksForEru) },
		changes: map[string]int{"create Deployment web": 1, "create Eru web": 1},
	}, {
		name: "deployment-bound-deleted", prepare: (*workloadRun).makeBound,
		edit:    func(s *workloadRun) { s.delete(foreignDeployment(s.named("web"))) },
		changes: map[string]int{"create Deployment web": 1, "create Eru web": 1, "delete Deployment web": 1, "delete Eru web": 1},
	}, {
		name: "deployment-bound-recreated", prepare: (*workloadRun).makeBound,
		edit: func(s *workloadRun) {
			s.delete(foreignDeployment(s.named("web")))
			s.target(asksForEru)
		},
		changes: map[string]int{"create Deployment web": 2, "create Eru web": 2, "delete Deployment web": 1, "delete Eru web": 1},
	},
}

func workloadOf(name string) faultWorkload {
	GinkgoHelper()
	i := slices.IndexFunc(faultWorkloads, func(w faultWorkload) bool { return w.name == name })
	Expect(i).To(BeNumerically(">=", 0), "there is no workload %q", name)
	return faultWorkloads[i]
}

// bystanders returns objects that the controller does not own and no workload uses.
func (s *workloadRun) bystanders() []client.Object {
	return []client.Object{foreignDeployment(s.named("bystander")), foreignService(s.named("bystander")), foreignDaemonSet(s.named("bystander"))}
}

// state returns the final state, without values that differ between runs.
func (s *workloadRun) state() string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	deployments, sets, services := &appsv1.DeploymentList{}, &appsv1.DaemonSetList{}, &corev1.ServiceList{}
	boxes, apps, daemons := &modelv1.ModelBoxList{}, &appv1.AppList{}, &mydomainv1beta1.GenericdaemonList{}
	uniteds, erus := &extensionv1.UnitedDeploymentList{}, &mtsrev1.EruList{}
	for _, list := range []client.ObjectList{deployments, sets, services, boxes, apps, daemons, uniteds, erus} {
		if err := env.Client.List(s.ctx, list, client.InNamespace(s.namespace)); err != nil {
			return err.Error()
		}
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		add("Deployment %s: %d x %s", d.Name, *d.Spec.Replicas, podsState(d.Spec.Template))
	}
	for i := range sets.Items {
		add("DaemonSet %s: %s", sets.Items[i].Name, podsState(sets.Items[i].Spec.Template))
	}
	for _, service := range services.Items {
		add("Service %s: %d", service.Name, service.Spec.Ports[0].Port)
	}
	for i := range erus.Items {
		add("Eru %s: %s", erus.Items[i].Name, eruState(&erus.Items[i]))
	}
	for _, list := range []client.ObjectList{boxes, apps, daemons, uniteds, erus} {
		_ = meta.EachListItem(list, func(obj runtime.Object) error {
			owner := obj.(status.Object)
			add("%T %s: %s", owner, owner.GetName(), readiness(s.ctx, owner)())
			return nil
		})
	}
	return strings.Join(lines, "\n")
}

func podsState(template corev1.PodTemplateSpec) string {
	main := template.Spec.Containers[0]
	return fmt.Sprintf("%s, %d env, %d ports, restarted %t", main.Image, len(main.Env), len(main.Ports),
		template.Annotations["kubectl.kubernetes.io/restartedAt"] != "")
}

func eruState(eru *mtsrev1.Eru) string {
	var entries []string
	for _, entry := range eru.Status.History {
		if entry.Reason == "Disabled" {
			continue // It depends on whether the Eru was disabled before its scheduled time was observed.
		}
		entries = append(entries, fmt.Sprintf("%s %s, started %t", entry.Result, entry.Reason, entry.StartedAt != nil))
	}
	return fmt.Sprintf("%s %v", eru.Status.Phase, entries)
}

// slotAfter returns a schedule with one scheduled time a year, and this time, which is about ten
// minutes after now: later than the creation of the objects, and no longer, as the clock of the
// process is a fake one.
func slotAfter(now time.Time) (string, time.Time) {
	slot := now.UTC().Add(10 * time.Minute).Truncate(time.Minute)
	return fmt.Sprintf("%d %d %d %d *", slot.Minute(), slot.Hour(), slot.Day(), slot.Month()), slot
}
