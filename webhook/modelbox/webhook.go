// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

// +kubebuilder:webhook:path=/mutate-model-github-com-v1-modelbox,mutating=true,name=default.modelbox.model.github.com,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=model.github.com,resources=modelboxes,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-model-github-com-v1-modelbox,mutating=false,name=validate.modelbox.model.github.com,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=model.github.com,resources=modelboxes,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system

// SetupWebhookWithManager registers the webhooks of ModelBoxes on the webhook server of a
// manager.
func SetupWebhookWithManager(mgr manager.Manager) error {
	admission.Register(mgr.GetWebhookServer(), Kind())
	return nil
}

// Kind returns the defaults and the rules of ModelBoxes, as both webhooks run them.
func Kind() admission.Kind[modelv1.ModelBox] {
	return admission.Kind[modelv1.ModelBox]{
		GVK:      modelv1.SchemeGroupVersion.WithKind("ModelBox"),
		Default:  Default,
		Validate: Validate,
		Warn:     Warn,
	}
}
