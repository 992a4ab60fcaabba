// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/modelbox-operator/modelbox-operator/kinds/app"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
	"github.com/modelbox-operator/modelbox-operator/kinds/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/uniteddeployment"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

// +kubebuilder:webhookconfiguration:mutating=true,name=modelbox-webhook
// +kubebuilder:webhookconfiguration:mutating=false,name=modelbox-webhook
// +kubebuilder:webhook:path=/mutate-model-github-com-v1-modelbox,mutating=true,name=default.modelbox.model.github.com,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=model.github.com,resources=modelboxes,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-model-github-com-v1-modelbox,mutating=false,name=validate.modelbox.model.github.com,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=model.github.com,resources=modelboxes,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/mutate-app-huolala-cn-v1-app,mutating=true,name=default.app.app.huolala.cn,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=app.huolala.cn,resources=apps,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-app-huolala-cn-v1-app,mutating=false,name=validate.app.app.huolala.cn,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=app.huolala.cn,resources=apps,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/mutate-mydomain-com-v1beta1-genericdaemon,mutating=true,name=default.genericdaemon.mydomain.com,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=mydomain.com,resources=genericdaemons,verbs=create;update,versions=v1beta1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-mydomain-com-v1beta1-genericdaemon,mutating=false,name=validate.genericdaemon.mydomain.com,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=mydomain.com,resources=genericdaemons,verbs=create;update,versions=v1beta1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/mutate-extension-k8s-io-v1-uniteddeployment,mutating=true,name=default.uniteddeployment.extension.k8s.io,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=extension.k8s.io,resources=uniteddeployments,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-extension-k8s-io-v1-uniteddeployment,mutating=false,name=validate.uniteddeployment.extension.k8s.io,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=extension.k8s.io,resources=uniteddeployments,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/mutate-mtsre-meitu-com-v1-eru,mutating=true,name=default.eru.mtsre.meitu.com,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=mtsre.meitu.com,resources=erus,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system
// +kubebuilder:webhook:path=/validate-mtsre-meitu-com-v1-eru,mutating=false,name=validate.eru.mtsre.meitu.com,failurePolicy=fail,sideEffects=None,timeoutSeconds=5,groups=mtsre.meitu.com,resources=erus,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system

// register registers the two webhooks of each kind. sizes returns the sizes of the cluster.
func register(server admission.Registry, sizes func() modelbox.Sizes) {
	admission.Register(server, modelbox.KindWithSizes(sizes))
	admission.Register(server, app.Kind())
	admission.Register(server, genericdaemon.Kind())
	admission.Register(server, uniteddeployment.Kind())
	admission.Register(server, eru.Kind())
}
