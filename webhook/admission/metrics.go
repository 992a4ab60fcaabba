// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// result is how an admission ended.
type result int

const (
	resultAllowed result = iota
	resultRefused
	resultError
	results
)

// resultOf returns the result of a response, which has no UID if there is none.
func resultOf(resp *admission.Response) result {
	switch {
	case resp.Allowed:
		return resultAllowed
	case resp.Result != nil && (resp.Result.Code == http.StatusForbidden || resp.Result.Code == http.StatusUnprocessableEntity):
		return resultRefused
	}
	return resultError
}

// operation groups the operations of reviews: those that these webhooks decide
// on, and all others, which they allow or cannot read.
type operation int

const (
	operationCreate operation = iota
	operationUpdate
	operationOther
	operations
)

var (
	resultNames    = [results]string{"allowed", "refused", "error"}
	operationNames = [operations]string{"CREATE", "UPDATE", "other"}
)

func operationOf(name admissionv1.Operation) operation {
	switch name {
	case admissionv1.Create:
		return operationCreate
	case admissionv1.Update:
		return operationUpdate
	}
	return operationOther
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
		// From 25 µs, what a small object takes, to beyond the API server's longest timeout.
		Buckets: prometheus.ExponentialBuckets(25e-6, 4, 11),
	}, []string{"kind", "webhook"})
	panicsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "modelbox_admission_panics_total",
		Help: "Panics that became an answer with status 500.",
	}, []string{"kind", "webhook"})
)

func init() {
	metrics.Registry.MustRegister(requestsTotal, duration, panicsTotal)
}

// webhookMetrics are the series of one webhook, looked up once: a lookup by labels
// costs each admission time and memory.
type webhookMetrics struct {
	requests [operations][results]prometheus.Counter
	panics   prometheus.Counter
	duration prometheus.Observer
}

func metricsFor(kind, webhook string) *webhookMetrics {
	m := &webhookMetrics{
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

func (m *webhookMetrics) observe(name admissionv1.Operation, resp *admission.Response, took time.Duration) {
	m.requests[operationOf(name)][resultOf(resp)].Inc()
	m.duration.Observe(took.Seconds())
}
