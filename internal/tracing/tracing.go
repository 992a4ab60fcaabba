// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing sends spans of OpenTelemetry to a collector, by OTLP over HTTP.
//
// It is off unless its flags name a collector. A collector that is slow or unavailable delays
// nothing: spans wait in a queue of a fixed length, and those that do not fit into it are dropped.
package tracing

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/modelbox-operator/modelbox-operator/internal/version"
)

// stopTime is how long the last spans may take when the process ends.
const stopTime = 3 * time.Second

// Options are the flags of tracing, which both processes have. The zero value is off.
type Options struct {
	endpoint string
	ratio    float64
}

// AddFlags adds the flags.
func (o *Options) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.endpoint, "tracing-endpoint", "", "URL of an OpenTelemetry collector that accepts OTLP over HTTP, such as http://collector.observability.svc:4318; /v1/traces is appended. Empty disables tracing")
	flags.Float64Var(&o.ratio, "tracing-sampling-ratio", 1, "fraction of traces to sample, from 0 to 1, when the request is not already sampled")
}

// Start starts to send spans to the collector, and returns a function that sends the last ones. It
// does nothing if tracing is off. The exporter reads the variables of the environment that
// OpenTelemetry has for it, such as OTEL_EXPORTER_OTLP_HEADERS.
func (o *Options) Start(service string) (stop func(), err error) {
	if o.endpoint == "" {
		return func() {}, nil
	}
	collector, err := url.Parse(o.endpoint)
	if err != nil || collector.Scheme != "http" && collector.Scheme != "https" || collector.Hostname() == "" {
		return nil, fmt.Errorf("--tracing-endpoint %q is not a URL that begins with http:// or https://, and has a host", o.endpoint)
	}
	if !(o.ratio >= 0 && o.ratio <= 1) {
		return nil, errors.New("--tracing-sampling-ratio must be from 0 to 1")
	}
	ctx, logger := context.Background(), log.Log.WithName("tracing")
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(collector.JoinPath("v1", "traces").String()))
	if err != nil {
		return nil, fmt.Errorf("creating the exporter of spans: %w", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.ratio))),
		sdktrace.WithResource(resource.NewWithAttributes(semconv.SchemaURL, semconv.ServiceName(service), semconv.ServiceVersion(version.Version))),
	)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Info("Spans were not sent", "reason", err.Error()) }))
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	return func() {
		ctx, cancel := context.WithTimeout(ctx, stopTime)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			logger.Info("The last spans were not sent", "reason", err.Error())
		}
	}, nil
}

// Handler makes a span of each request of a handler, below the span of the client.
func (o *Options) Handler(name string, handler http.Handler) http.Handler {
	if o.endpoint == "" {
		return handler
	}
	return otelhttp.NewHandler(handler, name)
}

// Requests makes a span of each request of a client configuration that belongs to a span, such as
// that of a reconcile: not of watches, and not of those for the lease.
func (o *Options) Requests(cfg *rest.Config) {
	if o.endpoint != "" {
		cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper {
			return otelhttp.NewTransport(rt, otelhttp.WithFilter(func(r *http.Request) bool {
				span := propagation.MapCarrier{}
				propagation.TraceContext{}.Inject(r.Context(), span)
				return len(span) > 0
			}))
		})
	}
}
