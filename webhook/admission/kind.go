// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

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
