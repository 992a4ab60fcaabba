// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload has what the kinds that run pods share: the builders of the Deployment and the
// Service of a ModelBox and of an App, and of the pod template of a Genericdaemon, which are pure;
// and the steps of a reconcile after the spec is validated, which each kind's Reconcile calls.
package workload

import (
	"cmp"
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
// a *rules.InvalidSpecError: admission would have refused the spec.
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

// checkSelector returns a *rules.InvalidSpecError if a live Deployment does not have the selector of an adopted
// object. The API server would refuse to change it, and the Service would select other pods.
func (w *Workload) checkSelector(live *appsv1.Deployment) error {
	have := metav1.FormatLabelSelector(live.Spec.Selector)
	want := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: w.MatchLabels})
	if have == want {
		return nil
	}
	return &rules.InvalidSpecError{Message: fmt.Sprintf("spec.selector is %s, but Deployment %q has the selector %s, and neither can be changed: "+
		"nothing is written; delete this object with --cascade=orphan, and adopt the Deployment again", want, live.Name, have)}
}

// Buildable returns a *rules.InvalidSpecError with the errors of a spec that leave open
// what its children have to be, nil if there are none. With any other error the children
// are built and the API server decides: a rule that is newer than a stored object must not
// stop the scaling and the repair of what runs.
func Buildable(errs field.ErrorList) error {
	if blocking := rules.Unbuildable(errs); len(blocking) > 0 {
		return &rules.InvalidSpecError{Message: rules.FormatErrors(blocking)}
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

// VerifyModel returns an error if a stored Deployment does not have the volume of a model that is an image:
// an API server that does not serve image volumes removes it.
// https://kubernetes.io/docs/concepts/storage/volumes/#image
func (w *Workload) VerifyModel(stored client.Object) error {
	volumes := stored.(*appsv1.Deployment).Spec.Template.Spec.Volumes
	for i := range w.Models {
		m := &w.Models[i]
		if m.From.Scheme != modelsource.Image || slices.ContainsFunc(volumes, func(v corev1.Volume) bool { return v.Name == m.VolumeName() && v.Image != nil }) {
			continue
		}
		path := field.NewPath("spec", "template", "spec", "volumes").Key(m.VolumeName()).Child("image")
		return apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), w.Owner.GetName(), field.ErrorList{
			field.Forbidden(path, "image volumes need Kubernetes 1.35 or later; use https:// or s3://"),
		})
	}
	return nil
}
