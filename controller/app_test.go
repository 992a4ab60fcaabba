// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

var _ = Describe("an App", func() {
	It("has the fields of its spec and no others", func() {
		ctx, named := context.Background(), metav1.ObjectMeta{Namespace: newNamespace(), Name: "nginx-app"}
		app := &appv1.App{ObjectMeta: named, Spec: appv1.AppSpec{
			Image: "nginx:1.16.1", Replicas: new(int32(2)),
			Ports: []modelv1.Port{{Port: 8080, TargetPort: new(intstr.FromInt32(80))}},
			Envs:  []corev1.EnvVar{{Name: "DEMO", Value: "app"}},
		}}
		Expect(env.Client.Create(ctx, app)).To(Succeed())
		rollOut(ctx, named)
		Eventually(readiness(ctx, app)).Should(Equal("True Ready"))
		Expect(app.Status.Address).To(Equal("nginx-app." + named.Namespace + ".svc:8080"))
		Expect(app.Status.Selector).To(Equal("app.kubernetes.io/instance=nginx-app,app.kubernetes.io/name=app"))
		deployment, service := get(ctx, &appsv1.Deployment{ObjectMeta: named}), get(ctx, &corev1.Service{ObjectMeta: named})
		main := deployment.Spec.Template.Spec.Containers[0]
		Expect(main.Name).To(Equal("nginx-app"))
		Expect(main.Resources).To(BeZero())
		Expect(main.ReadinessProbe).To(BeNil())
		Expect(service.Spec.Ports[0].TargetPort).To(Equal(intstr.FromInt32(80)))
		Expect(service.Spec.Type).To(Equal(corev1.ServiceTypeClusterIP))

		change(ctx, app, func(a *appv1.App) { a.Spec.Ports[0].NodePort = 30061 }) // Not one that the API server allocates: it begins at 30086.
		Eventually(func() corev1.ServiceType { return get(ctx, service).Spec.Type }).Should(Equal(corev1.ServiceTypeNodePort))
		change(ctx, app, func(a *appv1.App) { a.Spec.Ports, a.Spec.Envs = nil, nil })
		Eventually(func() error { return env.Client.Get(ctx, client.ObjectKeyFromObject(service), service) }).ShouldNot(Succeed())
		Eventually(func() int { return len(get(ctx, deployment).Spec.Template.Spec.Containers[0].Env) }).Should(BeZero())
	})
})
