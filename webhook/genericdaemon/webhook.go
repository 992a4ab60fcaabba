// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

// +kubebuilder:webhook:path=/mutate-mydomain-com-v1beta1-genericdaemon,mutating=true,name=default.genericdaemon.mydomain.com,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=mydomain.com,resources=genericdaemons,verbs=create;update,versions=v1beta1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-mydomain-com-v1beta1-genericdaemon,mutating=false,name=validate.genericdaemon.mydomain.com,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=mydomain.com,resources=genericdaemons,verbs=create;update,versions=v1beta1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system

// SetupWebhookWithManager registers the webhooks of Genericdaemons on the webhook server of a
// manager.
func SetupWebhookWithManager(mgr manager.Manager) error {
	admission.Register(mgr.GetWebhookServer(), Kind())
	return nil
}

// Kind returns the defaults and the rules of Genericdaemons, as both webhooks run them.
func Kind() admission.Kind[mydomainv1beta1.Genericdaemon] {
	return admission.Kind[mydomainv1beta1.Genericdaemon]{
		GVK:      mydomainv1beta1.SchemeGroupVersion.WithKind("Genericdaemon"),
		Default:  Default,
		Validate: Validate,
		Warn:     Warn,
	}
}
