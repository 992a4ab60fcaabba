// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
)

// Kind is what the webhook process knows of one kind: pure functions, handed
// everything they need. They are called by many goroutines at once, each with
// objects of its own.
type Kind[T any] struct {
	// GVK names the kind, and with it the paths of its webhooks.
	GVK schema.GroupVersionKind

	// Default fills in what obj leaves open and records it in ops, which may be
	// nil. What is there already is left alone, but for a value that was derived
	// from old and follows its source. old is nil when an object is created, and
	// in memory, where an object is only to be read as if it were complete; it
	// is not to be changed. Default must be idempotent. Neither object has a
	// status, and of managedFields only those of obj are there, and only with
	// old: they serve to tell what was derived from what was typed.
	Default func(obj, old *T, ops *patch.Ops)

	// Validate returns everything that is wrong with an object after Default,
	// the bounds in the schema included (see Mutating). It changes nothing.
	Validate func(obj *T) field.ErrorList

	// Warn returns a sentence for each thing that is legal but risky, of at most
	// 120 characters; the API server cuts longer ones. It may be nil, and is
	// called only for an object that is valid. It may look beyond the object, for
	// as long as ctx lasts and no longer than a person should wait.
	Warn func(ctx context.Context, obj *T) []string
}

// Object is a pointer to a kind's type.
type Object[T any] interface {
	*T
	metav1.Object
}

// Mux takes handlers by their path, as Server and http.ServeMux do.
type Mux interface {
	Handle(path string, handler http.Handler)
}

// Register serves both webhooks of a kind.
func Register[T any, P Object[T]](mux Mux, kind Kind[T]) {
	mux.Handle(MutatePath(kind.GVK), Mutating[T, P](kind))
	mux.Handle(ValidatePath(kind.GVK), Validating[T, P](kind))
}

// MutatePath is the path of a kind's mutating webhook, such as
// /mutate-app-huolala-cn-v1-app: the form that controller-runtime uses.
func MutatePath(gvk schema.GroupVersionKind) string { return path("/mutate-", gvk) }

// ValidatePath is the path of a kind's validating webhook, such as
// /validate-app-huolala-cn-v1-app.
func ValidatePath(gvk schema.GroupVersionKind) string { return path("/validate-", gvk) }

func path(prefix string, gvk schema.GroupVersionKind) string {
	return prefix + strings.ReplaceAll(gvk.Group, ".", "-") + "-" + gvk.Version + "-" + strings.ToLower(gvk.Kind)
}
