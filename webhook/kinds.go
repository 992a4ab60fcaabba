// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/webhook/admit"
	"github.com/modelbox-operator/modelbox-operator/webhook/modelbox"
)

// +kubebuilder:webhookconfiguration:mutating=true,name=modelbox-webhook
// +kubebuilder:webhookconfiguration:mutating=false,name=modelbox-webhook

// kinds are the kinds that this process admits. The markers become the webhook
// configurations: only a create or a change of spec calls them, and nothing holds
// up an object that is being deleted.
var kinds = []func(admit.Mux){
	registerModelBox,
}

// +kubebuilder:webhook:path=/mutate-model-github-com-v1-modelbox,mutating=true,failurePolicy=fail,sideEffects=None,groups=model.github.com,resources=modelboxes,verbs=create;update,versions=v1,name=default.modelbox.model.github.com,admissionReviewVersions=v1,reinvocationPolicy=IfNeeded,serviceName=modelbox-webhook,serviceNamespace=modelbox-system,patch=`{"matchConditions":[{"name":"create-or-new-spec","expression":"request.operation == 'CREATE' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`
// +kubebuilder:webhook:path=/validate-model-github-com-v1-modelbox,mutating=false,failurePolicy=fail,sideEffects=None,groups=model.github.com,resources=modelboxes,verbs=create;update,versions=v1,name=validate.modelbox.model.github.com,admissionReviewVersions=v1,serviceName=modelbox-webhook,serviceNamespace=modelbox-system,patch=`{"matchConditions":[{"name":"create-or-new-spec","expression":"request.operation == 'CREATE' || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

func registerModelBox(mux admit.Mux) {
	admit.Register(mux, admit.Kind[modelv1.ModelBox]{
		GVK:      modelv1.SchemeGroupVersion.WithKind("ModelBox"),
		Default:  modelbox.Default,
		Validate: modelbox.Validate,
		Warn:     func(_ context.Context, box *modelv1.ModelBox) []string { return modelbox.Warn(box) },
	})
}
