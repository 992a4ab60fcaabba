// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api gathers the API groups of the ModelBox Operator.
package api

import (
	"k8s.io/apimachinery/pkg/runtime"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
)

// The labels of every child that the operator makes, as
// https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/
// defines them.
const (
	// LabelName is the kind of the owner in lower case, such as modelbox.
	LabelName = "app.kubernetes.io/name"
	// LabelInstance is the name of the owner.
	LabelInstance = "app.kubernetes.io/instance"
	// LabelManagedBy is ManagedBy on every child.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "modelbox-operator"
)

// AnnotationRestartedAt is the annotation of a pod template that "kubectl rollout restart"
// sets (k8s.io/kubectl/pkg/polymorphichelpers/objectrestarter.go). In spec.podTemplate it is
// ignored, because it would undo every later restart.
const AnnotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

// AnnotationRevision numbers the pod templates of a Deployment; Kubernetes' own controller sets it on
// the Deployment and on each of its ReplicaSets.
const AnnotationRevision = "deployment.kubernetes.io/revision"

// AnnotationFrozen is the annotation of a Namespace that freezes it. Its value is the reason, for users. While
// a Namespace has it, the operator replaces no pods there for a schedule or for changed configuration, and
// updates that would replace them are refused (config/policies/frozen.yaml).
const AnnotationFrozen = "modelbox-operator.github.io/frozen"

// AnnotationRolloutNow is the annotation of an object whose value is its metadata.generation: the changes of
// that spec wait for no window (holdChanges: All). Who may set it, config/policies/frozen.yaml decides.
const AnnotationRolloutNow = "modelbox-operator.github.io/rollout-now"

// AnnotationConfiguration is the annotation of a pod template that spec.restartOnChange sets: the ConfigMaps and
// Secrets that the template refers to, with a hash of the data of each.
const AnnotationConfiguration = "modelbox-operator.github.io/configuration"

// FieldManager is the field manager, in metadata.managedFields, of what the controller
// writes.
const FieldManager = "modelbox-controller"

// ConditionReady and ConditionStalled are condition types of every kind. Ready is present from the
// first reconcile on, Stalled only while it is true, as kstatus reads it
// (https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md).
const (
	ConditionReady   = "Ready"
	ConditionStalled = "Stalled"
)

// Category is the category that all kinds share: "kubectl get mbo" lists them all.
const Category = "mbo"

var schemeBuilder = runtime.NewSchemeBuilder(
	modelv1.AddToScheme,
	appv1.AddToScheme,
	mydomainv1beta1.AddToScheme,
	extensionv1.AddToScheme,
	mtsrev1.AddToScheme,
)

// AddToScheme adds every kind of the project to a scheme.
var AddToScheme = schemeBuilder.AddToScheme
