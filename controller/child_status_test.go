// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
