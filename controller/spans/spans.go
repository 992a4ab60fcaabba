// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spans makes spans of OpenTelemetry of the reconciles of a manager, and of their requests
// to the API server. Without a TracerProvider it adds nothing to a manager, a reconciler or a
// client configuration.
//
// Spans have the names of objects, and nothing else of them: an error may quote a value of an
// object, so that of an error only its reason is recorded.
package spans

import (
	"context"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/internal/tracing"
)

// Requests makes a span of each request of a client configuration that belongs to a reconcile. The
// API server continues the trace. Watches and the requests for the lease are left out.
func Requests(cfg *rest.Config, provider *tracing.Provider) {
	if provider == nil {
		return
	}
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(rt,
			otelhttp.WithTracerProvider(provider.TracerProvider()),
			otelhttp.WithPropagators(tracing.Propagator),
			otelhttp.WithFilter(ofReconcile),
		)
	})
}

func ofReconcile(r *http.Request) bool { return trace.SpanContextFromContext(r.Context()).IsValid() }

// Manager returns a manager for whose controllers Reconciler makes spans, and mgr itself if there
// is no provider.
func Manager(mgr manager.Manager, provider *tracing.Provider) manager.Manager {
	if provider == nil {
		return mgr
	}
	return tracedManager{mgr, provider.Tracer()}
}

type tracedManager struct {
	manager.Manager
	tracer trace.Tracer
}

// Reconciler returns a reconciler that makes a span of each reconcile. name is that of the
// controller. It is r itself for a manager that Manager has not returned.
func Reconciler(mgr manager.Manager, name string, r reconcile.Reconciler) reconcile.Reconciler {
	traced, ok := mgr.(tracedManager)
	if !ok {
		return r
	}
	return &reconciler{inner: r, tracer: traced.tracer, name: "reconcile " + name, controller: attribute.String("kind", name)}
}

type reconciler struct {
	inner      reconcile.Reconciler
	tracer     trace.Tracer
	name       string
	controller attribute.KeyValue
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, span := r.tracer.Start(ctx, r.name, trace.WithAttributes(
		r.controller,
		attribute.String("namespace", req.Namespace),
		attribute.String("name", req.Name),
		// The log has it too.
		attribute.String("reconcileID", string(controller.ReconcileIDFromContext(ctx))),
	))
	defer span.End()
	result, err := r.inner.Reconcile(ctx, req)
	span.SetAttributes(attributesOf(result, err)...)
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	return result, err
}

// attributesOf returns how a reconcile ended, in the words of controller-runtime's metric
// controller_runtime_reconcile_total.
func attributesOf(result reconcile.Result, err error) []attribute.KeyValue {
	switch {
	case err != nil:
		return []attribute.KeyValue{attribute.String("result", "error"), attribute.String("error.type", reasonOf(err))}
	case result.RequeueAfter > 0:
		return []attribute.KeyValue{attribute.String("result", "requeue_after"), attribute.String("requeueAfter", result.RequeueAfter.String())}
	}
	return []attribute.KeyValue{attribute.String("result", "success")}
}

// reasonOf returns the reason of an error of the API server, such as Conflict, and otherwise what
// OpenTelemetry has for errors without a type.
func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}
	return "_OTHER"
}
