// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

// +kubebuilder:webhook:path=/mutate-extension-k8s-io-v1-uniteddeployment,mutating=true,name=default.uniteddeployment.extension.k8s.io,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=extension.k8s.io,resources=uniteddeployments,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-extension-k8s-io-v1-uniteddeployment,mutating=false,name=validate.uniteddeployment.extension.k8s.io,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=extension.k8s.io,resources=uniteddeployments,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system

// SetupWebhookWithManager registers the webhooks of UnitedDeployments on the webhook server of a
// manager. There are no warnings: whether the Deployment exists, and what else scales it, is
// in the status a moment later, and this process does not read the API.
func SetupWebhookWithManager(mgr manager.Manager) error {
	admission.Register(mgr.GetWebhookServer(), Kind())
	return nil
}

// Kind returns the defaults and the rules of UnitedDeployments, as both webhooks run them.
func Kind() admission.Kind[extensionv1.UnitedDeployment] {
	return admission.Kind[extensionv1.UnitedDeployment]{
		GVK:      extensionv1.SchemeGroupVersion.WithKind("UnitedDeployment"),
		Default:  Default,
		Validate: Validate,
	}
}
