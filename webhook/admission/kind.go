// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
)

// Kind is one kind at admission: pure functions whose arguments are everything that
// they need. They are called by many goroutines at once, each with objects of its own.
type Kind[T any] struct {
	// GVK names the kind, and with it the paths of its webhooks.
	GVK schema.GroupVersionKind

	// Default sets the defaults of obj and records them in ops, which may be nil. It
	// leaves alone what is set, except for a value that was derived from old and
	// follows its source. old is nil when an object is created, and when an object is
	// only read; it must not be changed. Default must be idempotent. Neither object
	// has a status, and only obj has managedFields and annotations, and only with old:
	// they show which values were derived and which a client set.
	Default func(obj, old *T, ops *patch.Ops)

	// Validate returns all errors of an object after Default, those of the schema's
	// bounds included (see NewDefaulter). It changes nothing.
	Validate func(obj *T) field.ErrorList

	// Warn returns a sentence for each thing that is allowed but risky, of at most
	// 120 characters; the API server cuts longer ones. It may be nil, and is
	// called only for a valid object.
	Warn func(obj *T) []string
}

// Object is a pointer to a kind's type.
type Object[T any] interface {
	*T
	metav1.Object
}

// Registry serves webhooks by their path, as webhook.Server of controller-runtime does.
type Registry interface {
	Register(path string, hook http.Handler)
}

// Register registers both webhooks of a kind.
func Register[T any, P Object[T]](registry Registry, kind Kind[T]) {
	registry.Register(MutatePath(kind.GVK), NewWebhook(kind.GVK.Kind, mutating, NewDefaulter[T, P](kind)))
	registry.Register(ValidatePath(kind.GVK), NewWebhook(kind.GVK.Kind, validating, NewValidator[T, P](kind)))
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
