// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

// +kubebuilder:webhook:path=/mutate-mtsre-meitu-com-v1-eru,mutating=true,name=default.eru.mtsre.meitu.com,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=mtsre.meitu.com,resources=erus,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-mtsre-meitu-com-v1-eru,mutating=false,name=validate.eru.mtsre.meitu.com,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=mtsre.meitu.com,resources=erus,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system

// SetupWebhookWithManager registers the webhooks of Erus on the webhook server of a
// manager.
func SetupWebhookWithManager(mgr manager.Manager) error {
	admission.Register(mgr.GetWebhookServer(), Kind())
	return nil
}

// Kind returns the defaults and the rules of Erus, as both webhooks run them.
func Kind() admission.Kind[mtsrev1.Eru] {
	return admission.Kind[mtsrev1.Eru]{
		GVK:      mtsrev1.SchemeGroupVersion.WithKind("Eru"),
		Default:  Default,
		Validate: Validate,
		Warn:     func(obj *mtsrev1.Eru) []string { return Warn(obj, time.Now()) },
	}
}
