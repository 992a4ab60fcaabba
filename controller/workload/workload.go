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

// Workload is what a kind asks for, in the words that its children share. All
// children are called as the owner.
type Workload struct {
	Owner client.Object
	// OwnerKind is the owner's kind, which objects read from a cache don't tell.
	OwnerKind schema.GroupVersionKind
	// AppName is the value of api.LabelName: one word for all objects of the kind.
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

	// PodTemplate is merged over the generated template.
	PodTemplate *runtime.RawExtension

	Replicas *int32
	// Rollout is both maxSurge and maxUnavailable; nil leaves them to the cluster.
	Rollout         *intstr.IntOrString
	MinReadySeconds int32

	ServiceType corev1.ServiceType

	// Paused keeps the operator from writing anything for the owner.
	Paused bool

	// rewritten says which values of the children admission rewrote.
	rewritten string
}

// Selector selects the workload's pods. It is made of name and instance alone,
// because a Deployment's selector can never change.
func (w *Workload) Selector() labels.Set {
	return labels.Set{api.LabelName: w.AppName, api.LabelInstance: w.Owner.GetName()}
}

func (w *Workload) labels() map[string]string {
	return labels.Merge(w.Selector(), labels.Set{api.LabelManagedBy: api.ManagedBy})
}

// ObjectMeta is the metadata of each child: name, labels and controller
// reference.
func (w *Workload) ObjectMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:            w.Owner.GetName(),
		Namespace:       w.Owner.GetNamespace(),
		Labels:          w.labels(),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.Owner, w.OwnerKind)},
	}
}
