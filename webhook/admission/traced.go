// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Traced returns a handler that answers as a Webhook does, and makes a span of each review. The
// span is a child of the API server's, whose context is in the header traceparent. It has the
// names of the object and the result, and nothing else of the object or of the errors.
func Traced(wh *Webhook, tracer trace.Tracer, propagator propagation.TextMapPropagator) http.Handler {
	inner := *wh
	inner.Handler = attributed{wh.Handler}
	name := names[wh.webhook] + " " + wh.kind
	common := []attribute.KeyValue{attribute.String("webhook", wh.webhook), attribute.String("kind", wh.kind)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagator.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(common...))
		defer span.End()
		watched := &codeWriter{ResponseWriter: w}
		inner.ServeHTTP(watched, r.WithContext(ctx))
		if watched.code >= http.StatusBadRequest {
			// What came is no review, or the review has no response.
			span.SetAttributes(attribute.Int("http.response.status_code", watched.code))
			span.SetStatus(codes.Error, "")
		}
	})
}

// names are the names of spans.
var names = map[string]string{mutating: "mutate", validating: "validate"}

// attributed is a handler that adds the request and the response to the span of its context.
type attributed struct{ admission.Handler }

// Handle implements admission.Handler.
func (a attributed) Handle(ctx context.Context, req admission.Request) (resp admission.Response) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return a.Handler.Handle(ctx, req)
	}
	span.SetAttributes(requestAttributes(&req)...)
	// Deferred, for a handler that panics: the response is empty then, which is an error.
	defer func() {
		result := resultOf(&resp)
		span.SetAttributes(attribute.Bool("allowed", resp.Allowed), attribute.String("result", resultNames[result]))
		if result == resultError {
			span.SetStatus(codes.Error, "")
		}
	}()
	return a.Handler.Handle(ctx, req)
}

// requestAttributes names a request. An object that is created with generateName has no name yet.
func requestAttributes(req *admission.Request) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("namespace", req.Namespace),
		attribute.String("operation", string(req.Operation)),
		attribute.String("uid", string(req.UID)),
	}
	if req.Name != "" {
		out = append(out, attribute.String("name", req.Name))
	}
	return out
}

// codeWriter keeps the status of an answer.
type codeWriter struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (w *codeWriter) WriteHeader(code int) {
	if w.code == 0 {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (w *codeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
