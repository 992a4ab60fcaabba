// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

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

// rollouts are what the cluster does during the rollouts of a kind with children.
type rollouts struct {
	// begin writes the status of a child whose pods do not run its template yet.
	begin func(ctx context.Context, named metav1.ObjectMeta)
	// complete writes the status of a child whose pods all run its template.
	complete func(ctx context.Context, named metav1.ObjectMeta)
	// disturb writes the status of a child of which a pod has become unavailable.
	disturb func(ctx context.Context, named metav1.ObjectMeta)
	// restart changes the template of the child as "kubectl rollout restart" does.
	restart func(ctx context.Context, named metav1.ObjectMeta)
	// scale changes the number of replicas, if the kind has one.
	scale func(status.Object, int32)
}

var ofDeployments = rollouts{
	begin: func(ctx context.Context, named metav1.ObjectMeta) {
		GinkgoHelper()
		writeDeploymentStatus(ctx, named, true, func(d *appsv1.Deployment) {
			d.Status.UpdatedReplicas, d.Status.AvailableReplicas = 0, 0
			d.Status.Conditions[1].Reason = "ReplicaSetUpdated"
		})
	},
	complete: func(ctx context.Context, named metav1.ObjectMeta) {
		GinkgoHelper()
		writeDeploymentStatus(ctx, named, false, func(*appsv1.Deployment) {})
	},
	disturb: func(ctx context.Context, named metav1.ObjectMeta) {
		GinkgoHelper()
		writeDeploymentStatus(ctx, named, false, func(d *appsv1.Deployment) {
			d.Status.AvailableReplicas--
			d.Status.Conditions[0].Status, d.Status.Conditions[0].Reason = corev1.ConditionFalse, "MinimumReplicasUnavailable"
		})
	},
	restart: func(ctx context.Context, named metav1.ObjectMeta) {
		GinkgoHelper()
		change(ctx, &appsv1.Deployment{ObjectMeta: named}, func(d *appsv1.Deployment) { restart(&d.Spec.Template) })
	},
}

var rolloutsOf = map[string]rollouts{
	"ModelBox": func() rollouts {
		r := ofDeployments
		r.scale = func(obj status.Object, n int32) { obj.(*modelv1.ModelBox).Spec.Replicas = &n }
		return r
	}(),
	"App": func() rollouts {
		r := ofDeployments
		r.scale = func(obj status.Object, n int32) { obj.(*appv1.App).Spec.Replicas = &n }
		return r
	}(),
	"Genericdaemon": {
		begin: func(ctx context.Context, named metav1.ObjectMeta) {
			GinkgoHelper()
			writeDaemonStatus(ctx, named, func(s *appsv1.DaemonSet) { s.Status.UpdatedNumberScheduled, s.Status.NumberAvailable = 0, 1 })
		},
		complete: rollOutDaemon,
		disturb: func(ctx context.Context, named metav1.ObjectMeta) {
			GinkgoHelper()
			writeDaemonStatus(ctx, named, func(s *appsv1.DaemonSet) { s.Status.NumberAvailable = 1 })
		},
		restart: func(ctx context.Context, named metav1.ObjectMeta) {
			GinkgoHelper()
			change(ctx, &appsv1.DaemonSet{ObjectMeta: named}, func(s *appsv1.DaemonSet) { restart(&s.Spec.Template) })
		},
	},
}

func restart(template *corev1.PodTemplateSpec) {
	template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": time.Now().Format(time.RFC3339Nano)}
}

// writeDeploymentStatus writes the status that the Deployment controller writes when all pods are
// available, changed by how. If the template is new, the Deployment has a new revision.
func writeDeploymentStatus(ctx context.Context, named metav1.ObjectMeta, newTemplate bool, how func(*appsv1.Deployment)) {
	GinkgoHelper()
	d := &appsv1.Deployment{ObjectMeta: named}
	Eventually(func() error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n, Conditions: rolledOut(),
		}
		if newTemplate {
			d.Annotations["deployment.kubernetes.io/revision"] += "1"
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

var _ = Describe("the events of rollouts", func() {
	ctx := context.Background()
	for kind, r := range rolloutsOf {
		It("are one for the begin and one for the end of each: "+kind, func() {
			named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"}
			obj := guarantees[kind].object(named)
			have := func(begun, completed int) {
				GinkgoHelper()
				Eventually(func() []int {
					return []int{eventCount(ctx, obj, "RolloutBegun"), eventCount(ctx, obj, "RolloutCompleted")}
				}).Should(Equal([]int{begun, completed}))
			}
			isReady := func(want bool) {
				GinkgoHelper()
				prefix := "False "
				if want {
					prefix = "True "
				}
				Eventually(readiness(ctx, obj)).Should(HavePrefix(prefix))
			}

			By("the first rollout begins at creation")
			Expect(env.Client.Create(ctx, obj)).To(Succeed())
			have(1, 0)
			r.begin(ctx, named)
			r.complete(ctx, named)
			have(1, 1)
			isReady(true)

			By("a pod that restarts, and a scale, are no rollouts")
			r.disturb(ctx, named)
			isReady(false)
			r.complete(ctx, named)
			isReady(true)
			if r.scale != nil {
				change(ctx, obj, func(obj status.Object) { r.scale(obj, 5) })
				isReady(false)
				r.complete(ctx, named)
				isReady(true)
			}

			By("a template that the operator changes")
			change(ctx, obj, guarantees[kind].edit)
			isReady(false)
			r.begin(ctx, named)
			have(2, 1)
			r.complete(ctx, named)
			have(2, 2)
			isReady(true)

			By("a restart of the controller, and a template that another client changes")
			stop()
			start()
			r.restart(ctx, named)
			r.begin(ctx, named)
			have(3, 2)
			isReady(false)

			By("a restart of the controller in the middle of the rollout")
			stop()
			// The new process writes the status again when it has observed the rollout.
			Eventually(func() error { // After what the former one has sent.
				get(ctx, obj).GetConditions()[0].Message = "written by the test"
				return env.Client.Status().Update(ctx, obj)
			}).Should(Succeed())
			start()
			Eventually(func() string { return get(ctx, obj).GetConditions()[0].Message }).ShouldNot(Equal("written by the test"))
			// The cluster reports the time of the completion in whole seconds.
			Eventually(func() bool {
				ready := get(ctx, obj).GetConditions()[0]
				return time.Since(ready.LastTransitionTime.Time) > 2*time.Second
			}).Should(BeTrue())
			r.complete(ctx, named)
			have(3, 3)
			isReady(true)

			By("a restart of the controller at rest")
			stop()
			start()
			r.disturb(ctx, named)
			isReady(false)
			r.complete(ctx, named)
			isReady(true)
			have(3, 3)
			for _, event := range eventsOf(ctx, obj, "RolloutCompleted") {
				Expect(event.Note).To(MatchRegexp(`^(Deployment|DaemonSet) "box": the rollout was completed in [0-9]+s$`))
				Expect(event.Type).To(Equal(corev1.EventTypeNormal))
			}
		})
	}
})
