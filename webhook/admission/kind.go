// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission makes of a kind's pure functions (default, validate, warn) two
// admission.Handlers of controller-runtime, one that defaults and one that validates,
// and serves them.
//
// The handlers are the project's own because of what an admission costs. The typed
// defaulter of controller-runtime decodes an object twice, copies it, marshals it and
// compares the two texts; here the object is decoded once into its type, and every
// default is recorded as it is set (package patch).
//
// Both webhooks are free of side effects: the answer depends on the request alone, so
// a dry run is answered like any other request, and a webhook may be called again
// (reinvocationPolicy) with the same outcome.
package admission

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// Registry serves webhooks by their path, as webhook.Server of controller-runtime does.
type Registry interface {
	Register(path string, hook http.Handler)
}

// Register registers both webhooks of a kind.
func Register[T any, P kinds.Object[T]](registry Registry, kind kinds.Kind[T]) {
	registry.Register(MutatePath(kind.GVK), &admission.Webhook{Handler: NewDefaulter[T, P](kind)})
	registry.Register(ValidatePath(kind.GVK), &admission.Webhook{Handler: NewValidator[T, P](kind)})
}

// MutatePath returns the path of a kind's mutating webhook, such as
// /mutate-app-huolala-cn-v1-app: the form that controller-runtime uses.
func MutatePath(gvk schema.GroupVersionKind) string { return path("/mutate-", gvk) }

// ValidatePath returns the path of a kind's validating webhook, such as
// /validate-app-huolala-cn-v1-app.
func ValidatePath(gvk schema.GroupVersionKind) string { return path("/validate-", gvk) }

func path(prefix string, gvk schema.GroupVersionKind) string {
	return prefix + strings.ReplaceAll(gvk.Group, ".", "-") + "-" + gvk.Version + "-" + strings.ToLower(gvk.Kind)
}
