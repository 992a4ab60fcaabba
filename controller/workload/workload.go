// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// Workload is the part of a spec that the desired objects are built from, in the form that
// the kinds share. Each object has the name of the owner.
type Workload struct {
	Owner client.Object
	// OwnerKind is the kind of the owner, which objects from a cache do not contain.
	OwnerKind schema.GroupVersionKind
	// AppName is the value of the label app.kubernetes.io/name: one for all objects of a kind.
	AppName string

	// Container is the name of the main container.
	Container string
	Image     string
	Resources *corev1.ResourceRequirements
	Ports     []modelv1.Port
	Env       []corev1.EnvVar
	EnvFrom   []corev1.EnvFromSource

	ReadinessProbe *corev1.Probe
	LivenessProbe  *corev1.Probe
	StartupProbe   *corev1.Probe

	// PodTemplate is applied to the generated template as a strategic merge patch.
	PodTemplate *runtime.RawExtension

	Replicas *int32
	// Rollout is both maxSurge and maxUnavailable; nil leaves them to the API server.
	Rollout         *intstr.IntOrString
	MinReadySeconds int32

	ServiceType corev1.ServiceType

	// Paused prevents every write for the owner.
	Paused bool
}

// Selector returns the labels that select the pods. They are name and instance only,
// because the selector of a Deployment is immutable.
func (w *Workload) Selector() labels.Set {
	return labels.Set{api.LabelName: w.AppName, api.LabelInstance: w.Owner.GetName()}
}

func (w *Workload) labels() map[string]string {
	return labels.Merge(w.Selector(), labels.Set{api.LabelManagedBy: api.ManagedBy})
}

// ObjectMeta returns the metadata of each desired object: name, labels and controller
// reference.
func (w *Workload) ObjectMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            w.Owner.GetName(),
		Namespace:       w.Owner.GetNamespace(),
		Labels:          w.labels(),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.Owner, w.OwnerKind)},
	}
}
