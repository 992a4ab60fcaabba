// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// result is how an admission ended.
type result int

const (
	permitted result = iota
	refused
	failed
	results
)

// operation groups the operations of reviews: those that these webhooks decide
// on, and all others, which they let through or cannot read.
type operation int

const (
	create operation = iota
	update
	other
	operations
)

var (
	resultNames    = [results]string{"allowed", "refused", "error"}
	operationNames = [operations]string{"CREATE", "UPDATE", "other"}
)

func operationOf(t text) operation {
	switch {
	case t.is("CREATE"):
		return create
	case t.is("UPDATE"):
		return update
	}
	return other
}

var (
	requestsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "modelbox_admission_requests_total",
		Help: "Admission reviews answered, by kind, webhook (mutating, validating), operation (CREATE, UPDATE, other) " +
			"and result: allowed, refused because of the object, or error.",
	}, []string{"kind", "webhook", "operation", "result"})
	duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "modelbox_admission_duration_seconds",
		Help: "Time from the first line of a review to its answer, the reading of its body included.",
		// From 25 µs, what a small object takes, to beyond the API server's longest patience.
		Buckets: prometheus.ExponentialBuckets(25e-6, 4, 11),
	}, []string{"kind", "webhook"})
	panicsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "modelbox_admission_panics_total",
		Help: "Panics that became an answer with status 500.",
	}, []string{"kind", "webhook"})
	inFlight = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "modelbox_admission_requests_in_flight",
		Help: "Requests that are being read or answered.",
	})
	overCapacityTotal = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "modelbox_admission_rejected_over_capacity_total",
		Help: "Requests answered with 503 because the server had as many, or as large ones, as it takes at once.",
	})
	certificateExpiry = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "modelbox_admission_certificate_expiry_timestamp_seconds",
		Help: "Unix time at which the certificate that is served expires; 0 until one is loaded.",
	})
)

func init() {
	metrics.Registry.MustRegister(requestsTotal, duration, panicsTotal, inFlight, overCapacityTotal, certificateExpiry)
}

// endpointMetrics are the series of one webhook, looked up once: a lookup by
// labels costs time and memory that an admission need not pay.
type endpointMetrics struct {
	requests [operations][results]prometheus.Counter
	panics   prometheus.Counter
	duration prometheus.Observer
}

func metricsFor(kind, webhook string) *endpointMetrics {
	m := &endpointMetrics{
		panics:   panicsTotal.WithLabelValues(kind, webhook),
		duration: duration.WithLabelValues(kind, webhook),
	}
	for o := range operations {
		for r := range results {
			m.requests[o][r] = requestsTotal.WithLabelValues(kind, webhook, operationNames[o], resultNames[r])
		}
	}
	return m
}

func (m *endpointMetrics) observe(t text, r result, took time.Duration) {
	m.requests[operationOf(t)][r].Inc()
	m.duration.Observe(took.Seconds())
}
