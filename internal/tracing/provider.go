// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"os"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/modelbox-operator/modelbox-operator/internal/version"
)

const (
	// queueLength is how many spans wait for the collector. One more is dropped. A span takes
	// about 1 kB.
	queueLength = 2048
	// batchLength is how many spans one request has at most.
	batchLength = 512
	// batchTime is how long a span waits for others.
	batchTime = 5 * time.Second
	// exportTimeout is how long one request to the collector may take.
	exportTimeout = 5 * time.Second
	// stopTimeout is how long the last spans may take when the process ends. Both pods have
	// that much of their terminationGracePeriodSeconds left.
	stopTimeout = 3 * time.Second
)

// limits bound a span, whatever its attributes are made of. The longest value that should be
// complete is the URL of a request, with a namespace of 63 bytes and a name of 253.
var limits = sdktrace.SpanLimits{
	AttributeValueLengthLimit: 1024,
	AttributeCountLimit:       32,
	EventCountLimit:           8,
	LinkCountLimit:            8,
}

// Propagator reads and writes the context of a trace as W3C's header traceparent, as the API
// server does.
var Propagator propagation.TextMapPropagator = propagation.TraceContext{}

// Provider makes spans and sends them to the collector.
type Provider struct {
	provider *sdktrace.TracerProvider
	log      logr.Logger
}

// Start returns a Provider for a process of the given name, nil if tracing is off. It connects
// to the collector only when there are spans.
//
// The variables of the environment that configure OpenTelemetry (OTEL_*) have no effect: the
// flags are the only place where tracing is configured.
func (o *Options) Start(service string) (*Provider, error) {
	if err := o.Validate(); err != nil || o.endpoint == nil {
		return nil, err
	}
	logger := log.Log.WithName("tracing")
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.V(1).Info("OpenTelemetry", "reason", err.Error()) }))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.rate()))),
		sdktrace.WithResource(resourceOf(service)),
		sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithBatcher(otlptrace.NewUnstarted(newClient(o.endpoint, logger)),
			sdktrace.WithMaxQueueSize(queueLength), sdktrace.WithMaxExportBatchSize(batchLength),
			sdktrace.WithBatchTimeout(batchTime), sdktrace.WithExportTimeout(exportTimeout)),
	)
	logger.Info("Sending spans", "endpoint", o.endpoint.String(), "rate", o.rate())
	return &Provider{provider: provider, log: logger}, nil
}

// resourceOf returns what all spans of the process have in common. The host name is the name of
// the pod.
func resourceOf(service string) *resource.Resource {
	attributes := []attribute.KeyValue{semconv.ServiceName(service), semconv.ServiceVersion(version.Version)}
	if host, err := os.Hostname(); err == nil {
		attributes = append(attributes, semconv.ServiceInstanceID(host))
	}
	return resource.NewWithAttributes(semconv.SchemaURL, attributes...)
}

// TracerProvider returns the TracerProvider of OpenTelemetry.
func (p *Provider) TracerProvider() trace.TracerProvider { return p.provider }

// Tracer returns what makes spans.
func (p *Provider) Tracer() trace.Tracer {
	return p.provider.Tracer("github.com/modelbox-operator/modelbox-operator")
}

// Stop sends the spans that are left. It returns after three seconds at the latest, and does
// nothing if p is nil.
func (p *Provider) Stop() {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := p.provider.Shutdown(ctx); err != nil {
		p.log.Info("The last spans were not sent", "reason", err.Error())
	}
}
