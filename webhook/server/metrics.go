// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	inFlight = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "modelbox_admission_requests_in_flight",
		Help: "Requests that are being read or answered.",
	})
	overCapacityTotal = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "modelbox_admission_rejected_over_capacity_total",
		Help: "Requests answered with 503 because the server had as many, or as large ones, as it takes at once.",
	})
	connectionsOpen = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "modelbox_admission_connections",
		Help: "Connections that are open, by port: webhook, metrics or health.",
	}, []string{"port"})
	disconnectedTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "modelbox_admission_disconnected_total",
		Help: "Connections that were closed to make room for others, by port and reason: never_served, slow, idle or memory.",
	}, []string{"port", "reason"})
	unreadTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "modelbox_admission_unread_total",
		Help: "Requests whose body was not read to its end, by reason: Timeout, RequestEntityTooLarge or BadRequest.",
	}, []string{"reason"})
	certificateExpiry = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "modelbox_admission_certificate_expiry_timestamp_seconds",
		Help: "Unix time at which the certificate that is served expires; 0 until one is loaded.",
	})
)

func init() {
	metrics.Registry.MustRegister(inFlight, overCapacityTotal, connectionsOpen, disconnectedTotal, unreadTotal, certificateExpiry)
}
