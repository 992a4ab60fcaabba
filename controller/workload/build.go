// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload has what the kinds that run pods share: the builders of the Deployment and the
// Service of a ModelBox and of an App, and of the pod template of a Genericdaemon, which are pure;
// and the steps of a reconcile after the spec is validated, which each kind's Reconcile calls.
package workload

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds/around"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
	"github.com/modelbox-operator/modelbox-operator/kinds/podtemplate"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Workload is the part of a spec that the desired objects are built from, in the form that
// the kinds share. Each object has the name of the owner.
type Workload struct {
	Owner client.Object
	// OwnerKind is the kind of the owner, which objects from a cache do not contain.
	OwnerKind schema.GroupVersionKind
	// Pods is what the spec defines of the pods.
	*podtemplate.Pods

	Replicas *int32
	// Strategy has precedence over Rollout, which is both maxSurge and maxUnavailable. If both
	// are nil, the strategy is left to the API server.
	Strategy                *appsv1.DeploymentStrategy
	Rollout                 *intstr.IntOrString
	MinReadySeconds         int32 // The default of the kind.
	ProgressDeadlineSeconds *int32

	ServiceType corev1.ServiceType

	// Around is what the spec has around the pods; the builder adds metadata, kind and selector.
	Around *around.Object

	// Fetched is what status records of the container that fetches a model, nil if that is nothing.
	Fetched *modelv1.FetcherStatus
	// Paused prevents every write for the owner.
	Paused bool
	// RestartOnChange is that of the spec.
	RestartOnChange modelv1.RestartOnChange
	// Windows are those of the spec, in which rollouts of changed configuration happen.
	Windows modelv1.Windows
}

// ObjectMeta returns the metadata of each desired object: name, labels and controller
// reference.
func (w *Workload) ObjectMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            w.Owner.GetName(),
		Namespace:       w.Owner.GetNamespace(),
		Labels:          w.Labels(),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.Owner, w.OwnerKind)},
	}
}

// with returns the metadata of a desired object that has further labels and annotations, if there are any.
func (w *Workload) with(more *modelv1.Metadata) metav1.ObjectMeta {
	meta := w.ObjectMeta()
	if more != nil {
		meta.Labels, meta.Annotations = labels.Merge(more.Labels, meta.Labels), maps.Clone(more.Annotations)
	}
	return meta
}

// Children returns the desired Deployment, the desired Service if there are ports, and the children of the blocks of the spec.
func (w *Workload) Children() ([]client.Object, error) {
	deployment, err := w.Deployment()
	if err != nil {
		return nil, err
	}
	children := []client.Object{deployment}
	if service := w.Service(); service != nil {
		children = append(children, service)
	}
	for _, child := range around.Children(w.around()) {
		children = append(children, child)
	}
	return children, nil
}

// Template returns the desired pod template, which is the one that admission validates. Its error is
// a status.Readiness: admission would have refused the spec.
func (w *Workload) Template() (corev1.PodTemplateSpec, error) {
	template, errs := w.Effective()
	return template, Buildable(errs)
}

// Deployment returns the desired Deployment.
func (w *Workload) Deployment() (*appsv1.Deployment, error) {
	template, err := w.Template()
	if err != nil {
		return nil, err
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: w.with(w.Around.DeploymentMetadata),
		Spec: appsv1.DeploymentSpec{
			Replicas:                w.Replicas,
			Selector:                &metav1.LabelSelector{MatchLabels: w.Selector()},
			Template:                template,
			Strategy:                w.strategy(),
			MinReadySeconds:         ptr.Deref(w.Around.MinReadySeconds, w.MinReadySeconds),
			RevisionHistoryLimit:    w.Around.RevisionHistoryLimit,
			ProgressDeadlineSeconds: w.ProgressDeadlineSeconds,
		},
	}, nil
}

// strategy returns the strategy of the Deployment, which is empty if neither Strategy nor
// Rollout is set.
func (w *Workload) strategy() appsv1.DeploymentStrategy {
	switch {
	case w.Strategy == nil && modelv1.IsUnset(w.Rollout):
		return appsv1.DeploymentStrategy{}
	case w.Strategy == nil:
		both := step(w.Rollout)
		return rollingUpdate(both, both)
	case w.Strategy.Type == appsv1.RecreateDeploymentStrategyType:
		return appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	steps := cmp.Or(w.Strategy.RollingUpdate, &appsv1.RollingUpdateDeployment{})
	return rollingUpdate(step(steps.MaxSurge), step(steps.MaxUnavailable))
}

// rollingUpdate returns a strategy with both steps. A step that is left to the API server
// would belong to no field manager: it would stay in the Deployment when the type becomes
// Recreate, and the API server would refuse the two together.
func rollingUpdate(maxSurge, maxUnavailable *intstr.IntOrString) appsv1.DeploymentStrategy {
	return appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: maxSurge, MaxUnavailable: maxUnavailable},
	}
}

// step returns a step, which is Kubernetes' default of 25% if it is not set.
func step(v *intstr.IntOrString) *intstr.IntOrString {
	if modelv1.IsUnset(v) {
		return new(intstr.FromString("25%"))
	}
	return new(modelv1.IntOrPercent(*v))
}

// Service returns the desired Service, nil if there are no ports. It does not set clusterIP,
// and nodePort only where the spec does: the API server allocates them once, and an apply
// leaves alone what it does not contain.
func (w *Workload) Service() *corev1.Service {
	if len(w.Ports) == 0 {
		return nil
	}
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Service"},
		ObjectMeta: w.with(w.Around.ServiceMetadata),
		Spec: corev1.ServiceSpec{
			Type:     w.ServiceType,
			Selector: w.Selector(),
			Ports:    w.servicePorts(),
		},
	}
	around.SetService(w.Around.Service, &service.Spec)
	return service
}

func (w *Workload) servicePorts() []corev1.ServicePort {
	ports := make([]corev1.ServicePort, 0, len(w.Ports))
	for i := range w.Ports {
		port := &w.Ports[i]
		ports = append(ports, corev1.ServicePort{
			Name:        port.Name,
			Protocol:    port.ProtocolOrDefault(),
			AppProtocol: port.AppProtocolOrNil(),
			Port:        port.Port,
			TargetPort:  port.TargetPortOrDefault(),
			NodePort:    port.NodePort,
		})
	}
	return ports
}

// Address returns the address of the first port within the cluster, "" without ports.
func (w *Workload) Address() string {
	if len(w.Ports) == 0 {
		return ""
	}
	return fmt.Sprintf("%s.%s.svc:%d", w.Owner.GetName(), w.Owner.GetNamespace(), w.Ports[0].Port)
}

// Buildable returns a status.Readiness with the errors of a spec that leave open
// what its children have to be, nil if there are none. With any other error the children
// are built and the API server decides: a rule that is newer than a stored object must not
// stop the scaling and the repair of what runs.
func Buildable(errs field.ErrorList) error {
	if blocking := rules.Unbuildable(errs); len(blocking) > 0 {
		return status.NewStalled(status.ReasonInvalidSpec, rules.FormatErrors(blocking))
	}
	return nil
}

// FetcherStatus returns which image and mirrors fetch the model in the pods of a desired Deployment,
// and the hash of the rest of its pod template; nil if they fetch none.
func (w *Workload) FetcherStatus(desired *appsv1.Deployment) (*modelv1.FetcherStatus, error) {
	template := desired.Spec.Template
	template.Annotations = maps.Clone(template.Annotations)
	delete(template.Annotations, api.AnnotationConfiguration) // Its change is no other model.
	init := slices.Clone(template.Spec.InitContainers)
	if len(init) == 0 || !modelsource.IsFetcher(&init[0]) {
		return nil, nil
	}
	init[0] = modelsource.WithoutFetcher(init[0])
	template.Spec.InitContainers = init
	hash, err := apply.Hash(&template)
	if err != nil {
		return nil, err
	}
	return &modelv1.FetcherStatus{TemplateHash: hash, Image: w.Fetcher.Image, Mirrors: w.Fetcher.Mirrors}, nil
}

// keepFetcher changes a desired Deployment so that its pods fetch their model with the image and the
// mirrors that status records, if nothing else of the pod template has changed since. Another version
// of the operator, or another value of its flags, has other ones, which must not replace pods. Users may
// edit an annotation or the pod template of a Deployment and of a ReplicaSet, but only read status.
func (w *Workload) keepFetcher(desired *appsv1.Deployment) error {
	now, err := w.FetcherStatus(desired)
	applied := w.Fetched
	if err != nil || now == nil || applied == nil || applied.TemplateHash != now.TemplateHash {
		return err
	}
	w.Fetcher = modelsource.Fetcher{Image: applied.Image, Mirrors: applied.Mirrors}
	desired.Spec.Template, err = w.Template()
	return err
}

// observe returns the observed state of the Deployment, and copies its counters, and the address of the Service,
// to the status of the owner.
func (w *Workload) observe(c *Children, into *modelv1.WorkloadStatus) Observed {
	live := c.Pods.Live.(*appsv1.Deployment)
	observed := &live.Status
	into.Replicas = observed.Replicas
	into.ReadyReplicas = observed.ReadyReplicas
	into.UpdatedReplicas = observed.UpdatedReplicas
	into.AvailableReplicas = observed.AvailableReplicas
	into.UnavailableReplicas = observed.UnavailableReplicas
	into.TerminatingReplicas = observed.TerminatingReplicas
	into.CollisionCount = observed.CollisionCount
	into.Selector = w.Selector().String()
	into.Address = ""
	if c.Service.Exists() {
		into.Address = w.Address()
	}
	c.surroundings.status(into)
	return Observed{Kind: "Deployment", Progress: unpaused(live), Availability: availability(live), Workload: problems.OfDeployment(live)}
}

// reasonDeploymentPaused means that the rollouts of the Deployment are paused.
const reasonDeploymentPaused = "DeploymentPaused"

// unpaused is Progress, unless the Deployment is paused ("kubectl rollout pause"). The operator does not resume
// it: a user has paused it on purpose.
func unpaused(live *appsv1.Deployment) status.Readiness {
	if live.Spec.Paused {
		return status.Readiness{Reason: reasonDeploymentPaused, Message: fmt.Sprintf(
			"Deployment %q is paused, so its pods do not get a changed template: kubectl rollout resume deployment/%s -n %s",
			live.Name, live.Name, live.Namespace)}
	}
	return Progress(live)
}

// Progress returns the readiness of the owner of a Deployment whose children have been
// applied. It is ready only if every pod runs the current template and is available, and
// no other pod is left: the fields that "kubectl rollout status" reads.
func Progress(deployment *appsv1.Deployment) status.Readiness {
	observed, scaled := &deployment.Status, Scaled(deployment)
	desired := ptr.Deref(deployment.Spec.Replicas, 1)
	if !isObserved(deployment) {
		return scaled
	}
	if failure := failure(observed); failure != nil {
		return *failure
	}
	switch {
	case observed.UpdatedReplicas < desired:
		return status.Progressing("%d of %d pods run the current template", observed.UpdatedReplicas, desired)
	case observed.Replicas > observed.UpdatedReplicas:
		return status.Progressing("waiting for the deletion of %d of %d pods, which run an old template",
			observed.Replicas-observed.UpdatedReplicas, observed.Replicas)
	}
	return scaled
}

// Scaled returns the readiness of a Deployment by the number of its pods, whatever template they
// run.
func Scaled(deployment *appsv1.Deployment) status.Readiness {
	observed, desired := &deployment.Status, ptr.Deref(deployment.Spec.Replicas, 1)
	switch {
	case !isObserved(deployment):
		return status.NewReconciling(status.ReasonProgressing, status.NotObservedYet("Deployment", deployment.Generation))
	case observed.Replicas > desired:
		return status.Progressing("waiting for the deletion of %d of %d pods", observed.Replicas-desired, observed.Replicas)
	case observed.AvailableReplicas < desired:
		return status.Progressing("%d of %d pods are available", observed.AvailableReplicas, desired)
	}
	return status.NewReady(fmt.Sprintf("%d of %d pods are available", observed.AvailableReplicas, desired))
}

// ReasonTargetNotFound means that the Deployment which an object acts on does not exist.
const ReasonTargetNotFound = "TargetNotFound"

// TargetNotFound returns the readiness of an object whose spec.deploymentName names no Deployment.
func TargetNotFound(name string) status.Readiness {
	return status.NewStalled(ReasonTargetNotFound, fmt.Sprintf(
		"there is no Deployment %q in this namespace: create it, or change spec.deploymentName", name))
}

// Target reads, from the cache, the Deployment that an object of its namespace acts on, nil if there is none.
func Target(ctx context.Context, cache client.Reader, namespace, name string) (*appsv1.Deployment, error) {
	target := &appsv1.Deployment{}
	err := cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, target)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %q: %w", name, err)
	}
	return target, nil
}

// failure returns the readiness for a Deployment that cannot progress by itself, nil if it
// can, with the message of the Deployment's own condition.
func failure(observed *appsv1.DeploymentStatus) *status.Readiness {
	for _, condition := range observed.Conditions {
		var reason string
		switch {
		case condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue:
			reason = status.ReasonReplicaFailure
		case condition.Type == appsv1.DeploymentProgressing && condition.Reason == status.ReasonProgressDeadline:
			reason = status.ReasonProgressDeadline
		default:
			continue
		}
		readiness := status.NewStalled(reason, condition.Message)
		return &readiness
	}
	return nil
}

// isObserved reports whether the status of a Deployment is one of its current spec.
func isObserved(deployment *appsv1.Deployment) bool {
	return status.IsObserved(deployment.Generation, deployment.Status.ObservedGeneration)
}

// availability returns the availability of the owner of a Deployment: the Deployment's own
// condition. That one has a minimum: all replicas but those that maxUnavailable allows.
func availability(deployment *appsv1.Deployment) metav1.Condition {
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentAvailable {
			return metav1.Condition{
				Status:             metav1.ConditionStatus(condition.Status),
				Reason:             condition.Reason,
				Message:            condition.Message,
				LastTransitionTime: condition.LastTransitionTime,
			}
		}
	}
	return status.NotObserved("Deployment", deployment.Generation)
}
