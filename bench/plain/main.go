// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command plain is a controller for ModelBoxes as tutorials write one: CreateOrUpdate
// for each child, Owns, the default cache and workers, and a status update in each
// reconcile. It does the main part of the operator's job for ModelBoxes, without
// validation, events and other care. It exists to be measured, not to be used.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(modelv1.AddToScheme(scheme))
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(1)
	}
}

func run() error {
	metrics := flag.String("metrics-bind-address", "0", "address that /metrics is served on")
	pprof := flag.String("pprof-bind-address", "", "address that /debug/pprof is served on")
	flag.Parse() // --kubeconfig is controller-runtime's.
	ctrl.SetLogger(zap.New())
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:           scheme,
		Metrics:          metricsserver.Options{BindAddress: *metrics},
		PprofBindAddress: *pprof,
	})
	if err != nil {
		return err
	}
	reconciler := &ModelBoxReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}
	if err := reconciler.SetupWithManager(mgr); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// ModelBoxReconciler reconciles a ModelBox object.
type ModelBoxReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// SetupWithManager sets up the controller with the Manager.
func (r *ModelBoxReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&modelv1.ModelBox{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Complete(r)
}

// Reconcile creates or updates the children and updates the status.
func (r *ModelBoxReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	box := &modelv1.ModelBox{}
	if err := r.Get(ctx, req.NamespacedName, box); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: box.Namespace, Name: box.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		return r.deployment(box, deployment)
	}); err != nil {
		return ctrl.Result{}, err
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: box.Namespace, Name: box.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, service, func() error {
		return r.service(box, service)
	}); err != nil {
		return ctrl.Result{}, err
	}
	r.status(box, deployment)
	return ctrl.Result{}, r.Status().Update(ctx, box)
}

func labelsOf(box *modelv1.ModelBox) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": "modelbox", "app.kubernetes.io/instance": box.Name, "app.kubernetes.io/managed-by": "plain",
	}
}

func (r *ModelBoxReconciler) deployment(box *modelv1.ModelBox, deployment *appsv1.Deployment) error {
	spec := &box.Spec
	labels := labelsOf(box)
	container := corev1.Container{
		Name: spec.Name, Image: spec.Image, Env: spec.Envs, Resources: *spec.Resources,
		ReadinessProbe: spec.ReadinessProbe, LivenessProbe: spec.LivenessProbe, StartupProbe: spec.StartupProbe,
	}
	for _, port := range spec.Ports {
		container.Ports = append(container.Ports, corev1.ContainerPort{Name: port.Name, ContainerPort: port.Port})
	}
	deployment.Labels = labels
	deployment.Spec.Replicas = spec.Replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.MinReadySeconds = 3
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{container}
	return controllerutil.SetControllerReference(box, deployment, r.Scheme)
}

func (r *ModelBoxReconciler) service(box *modelv1.ModelBox, service *corev1.Service) error {
	service.Labels = labelsOf(box)
	service.Spec.Selector = labelsOf(box)
	service.Spec.Type = box.Spec.ServiceType
	service.Spec.Ports = nil
	for _, port := range box.Spec.Ports {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: port.Name, Port: port.Port})
	}
	return controllerutil.SetControllerReference(box, service, r.Scheme)
}

func (r *ModelBoxReconciler) status(box *modelv1.ModelBox, deployment *appsv1.Deployment) {
	box.Status.ObservedGeneration = box.Generation
	box.Status.Replicas = deployment.Status.Replicas
	box.Status.ReadyReplicas = deployment.Status.ReadyReplicas
	box.Status.AvailableReplicas = deployment.Status.AvailableReplicas
	condition := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Progressing", ObservedGeneration: box.Generation,
		Message: fmt.Sprintf("%d of %d replicas are available", deployment.Status.AvailableReplicas, *box.Spec.Replicas),
	}
	if deployment.Status.AvailableReplicas == *box.Spec.Replicas {
		condition.Status, condition.Reason = metav1.ConditionTrue, "Available"
	}
	meta.SetStatusCondition(&box.Status.Conditions, condition)
}
