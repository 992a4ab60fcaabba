// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

// +kubebuilder:webhook:path=/mutate-extension-k8s-io-v1-uniteddeployment,mutating=true,name=default.uniteddeployment.extension.k8s.io,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=extension.k8s.io,resources=uniteddeployments,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-extension-k8s-io-v1-uniteddeployment,mutating=false,name=validate.uniteddeployment.extension.k8s.io,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=extension.k8s.io,resources=uniteddeployments,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=list
// +kubebuilder:rbac:groups=extension.k8s.io,resources=uniteddeployments,verbs=list

// SetupWebhookWithManager registers the webhooks of UnitedDeployments on the webhook server of a
// manager. reader reads the objects that a warning depends on; without one, which is
// nil, there is no such warning.
func SetupWebhookWithManager(mgr manager.Manager, reader client.Reader) error {
	admission.Register(mgr.GetWebhookServer(), admission.Kind[extensionv1.UnitedDeployment]{
		GVK:      extensionv1.SchemeGroupVersion.WithKind("UnitedDeployment"),
		Default:  Default,
		Validate: Validate,
		Warn:     warnWith(reader),
	})
	return nil
}

// warningTimeout bounds the reads of a warning. An admission waits no longer for them.
const warningTimeout = time.Second

// warnWith returns Warn with a reader, nil if there is none.
func warnWith(reader client.Reader) func(context.Context, *extensionv1.UnitedDeployment) []string {
	if reader == nil {
		return nil
	}
	return func(ctx context.Context, ud *extensionv1.UnitedDeployment) []string {
		ctx, cancel := context.WithTimeout(ctx, warningTimeout)
		defer cancel()
		return Warn(ctx, reader, ud)
	}
}
