// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/webhook/admit"
	"github.com/modelbox-operator/modelbox-operator/webhook/app"
	"github.com/modelbox-operator/modelbox-operator/webhook/eru"
	"github.com/modelbox-operator/modelbox-operator/webhook/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/webhook/modelbox"
	"github.com/modelbox-operator/modelbox-operator/webhook/uniteddeployment"
)

// kinds are the kinds that this process admits. The markers become the webhook
// configurations: only a create or a change of spec calls them, and nothing holds
// up an object that is being deleted.
var kinds = []func(admit.Mux, surroundings){
	registerModelBox,
	registerApp,
	registerGenericdaemon,
	registerUnitedDeployment,
	registerEru,
}

// surroundings are what warnings look at. Defaults and rules look at nothing but
// the object.
type surroundings struct {
	reader client.Reader
	clock  clock.PassiveClock
}

// patience is how long a warning may take that asks the API server: an admission
// is not held up for it any longer.
const patience = time.Second

// +kubebuilder:webhookconfiguration:mutating=true,name=modelbox-webhook
// +kubebuilder:webhookconfiguration:mutating=false,name=modelbox-webhook
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=list
// +kubebuilder:rbac:groups=extension.k8s.io,resources=uniteddeployments,verbs=list

// +kubebuilder:webhook:path=/mutate-model-github-com-v1-modelbox,mutating=true,name=default.modelbox.model.github.com,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,groups=model.github.com,resources=modelboxes,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system,patch=`{"matchConditions":[{"name":"create-or-new-spec","expression":"request.operation == 'CREATE' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`
// +kubebuilder:webhook:path=/validate-model-github-com-v1-modelbox,mutating=false,name=validate.modelbox.model.github.com,failurePolicy=fail,sideEffects=None,groups=model.github.com,resources=modelboxes,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system,patch=`{"matchConditions":[{"name":"create-or-new-spec","expression":"request.operation == 'CREATE' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

func registerModelBox(mux admit.Mux, _ surroundings) {
	admit.Register(mux, admit.Kind[modelv1.ModelBox]{
		GVK:      modelv1.SchemeGroupVersion.WithKind("ModelBox"),
		Default:  modelbox.Default,
		Validate: modelbox.Validate,
		Warn:     func(_ context.Context, obj *modelv1.ModelBox) []string { return modelbox.Warn(obj) },
	})
}

// +kubebuilder:webhook:path=/mutate-app-huolala-cn-v1-app,mutating=true,name=default.app.app.huolala.cn,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,groups=app.huolala.cn,resources=apps,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system,patch=`{"matchConditions":[{"name":"create-or-new-spec","expression":"request.operation == 'CREATE' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`
// +kubebuilder:webhook:path=/validate-app-huolala-cn-v1-app,mutating=false,name=validate.app.app.huolala.cn,failurePolicy=fail,sideEffects=None,groups=app.huolala.cn,resources=apps,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system,patch=`{"matchConditions":[{"name":"create-or-new-spec","expression":"request.operation == 'CREATE' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

func registerApp(mux admit.Mux, _ surroundings) {
	admit.Register(mux, admit.Kind[appv1.App]{
		GVK:      appv1.SchemeGroupVersion.WithKind("App"),
		Default:  app.Default,
		Validate: app.Validate,
		Warn:     func(_ context.Context, obj *appv1.App) []string { return app.Warn(obj) },
	})
}

// +kubebuilder:webhook:path=/mutate-mydomain-com-v1beta1-genericdaemon,mutating=true,name=default.genericdaemon.mydomain.com,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,groups=mydomain.com,resources=genericdaemons,verbs=create;update,versions=v1beta1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system,patch=`{"matchConditions":[{"name":"create-or-new-spec","expression":"request.operation == 'CREATE' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`
// +kubebuilder:webhook:path=/validate-mydomain-com-v1beta1-genericdaemon,mutating=false,name=validate.genericdaemon.mydomain.com,failurePolicy=fail,sideEffects=None,groups=mydomain.com,resources=genericdaemons,verbs=create;update,versions=v1beta1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system,patch=`{"matchConditions":[{"name":"create-or-new-spec","expression":"request.operation == 'CREATE' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

func registerGenericdaemon(mux admit.Mux, _ surroundings) {
	admit.Register(mux, admit.Kind[mydomainv1beta1.Genericdaemon]{
		GVK:      mydomainv1beta1.SchemeGroupVersion.WithKind("Genericdaemon"),
		Default:  genericdaemon.Default,
		Validate: genericdaemon.Validate,
		Warn:     func(_ context.Context, obj *mydomainv1beta1.Genericdaemon) []string { return genericdaemon.Warn(obj) },
	})
}

// +kubebuilder:webhook:path=/mutate-extension-k8s-io-v1-uniteddeployment,mutating=true,name=default.uniteddeployment.extension.k8s.io,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,groups=extension.k8s.io,resources=uniteddeployments,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system,patch=`{"matchConditions":[{"name":"create-or-new-spec","expression":"request.operation == 'CREATE' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`
// +kubebuilder:webhook:path=/validate-extension-k8s-io-v1-uniteddeployment,mutating=false,name=validate.uniteddeployment.extension.k8s.io,failurePolicy=fail,sideEffects=None,groups=extension.k8s.io,resources=uniteddeployments,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system,patch=`{"matchConditions":[{"name":"create-or-new-spec","expression":"request.operation == 'CREATE' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

func registerUnitedDeployment(mux admit.Mux, s surroundings) {
	admit.Register(mux, admit.Kind[extensionv1.UnitedDeployment]{
		GVK:      extensionv1.SchemeGroupVersion.WithKind("UnitedDeployment"),
		Default:  uniteddeployment.Default,
		Validate: uniteddeployment.Validate,
		Warn: func(ctx context.Context, obj *extensionv1.UnitedDeployment) []string {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			return uniteddeployment.Warn(ctx, s.reader, obj)
		},
	})
}

// +kubebuilder:webhook:path=/mutate-mtsre-meitu-com-v1-eru,mutating=true,name=default.eru.mtsre.meitu.com,reinvocationPolicy=IfNeeded,failurePolicy=fail,sideEffects=None,groups=mtsre.meitu.com,resources=erus,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system,patch=`{"matchConditions":[{"name":"create-or-new-spec","expression":"request.operation == 'CREATE' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`
// +kubebuilder:webhook:path=/validate-mtsre-meitu-com-v1-eru,mutating=false,name=validate.eru.mtsre.meitu.com,failurePolicy=fail,sideEffects=None,groups=mtsre.meitu.com,resources=erus,verbs=create;update,versions=v1,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system,patch=`{"matchConditions":[{"name":"create-or-new-spec","expression":"request.operation == 'CREATE' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

func registerEru(mux admit.Mux, s surroundings) {
	admit.Register(mux, admit.Kind[mtsrev1.Eru]{
		GVK:      mtsrev1.SchemeGroupVersion.WithKind("Eru"),
		Default:  eru.Default,
		Validate: eru.Validate,
		Warn:     func(_ context.Context, obj *mtsrev1.Eru) []string { return eru.Warn(obj, s.clock.Now()) },
	})
}
