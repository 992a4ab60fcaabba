// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

// +kubebuilder:webhook:path=/mutate-app-huolala-cn-v1-app,mutating=true,name=default.app.app.huolala.cn,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=app.huolala.cn,resources=apps,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-app-huolala-cn-v1-app,mutating=false,name=validate.app.app.huolala.cn,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=app.huolala.cn,resources=apps,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system

// SetupWebhookWithManager registers the webhooks of Apps on the webhook server of a
// manager.
func SetupWebhookWithManager(mgr manager.Manager) error {
	admission.Register(mgr.GetWebhookServer(), Kind())
	return nil
}

// Kind returns the defaults and the rules of Apps, as both webhooks run them.
func Kind() admission.Kind[appv1.App] {
	return admission.Kind[appv1.App]{
		GVK:      appv1.SchemeGroupVersion.WithKind("App"),
		Default:  Default,
		Validate: Validate,
		Warn:     Warn,
	}
}
