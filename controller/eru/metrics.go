// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
)

// nextRestarts reports the next scheduled times of the Erus of the process.
var nextRestarts schedule

var (
	restarts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "modelbox_eru_restarts_total",
		Help: "Scheduled times that were decided, by result (Restarted, Skipped, Failed). One whose status could not be written counts again.",
	}, []string{"result"})

	lateness = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "modelbox_eru_restart_lateness_seconds",
		Help:    "Time from a scheduled time to its restart, jitter included.",
		Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 21600, 86400},
	})
)

func init() {
	metrics.Registry.MustRegister(&nextRestarts, restarts, lateness)
	for _, result := range []mtsrev1.EruResult{mtsrev1.EruRestarted, mtsrev1.EruSkipped, mtsrev1.EruResultFailed} {
		restarts.WithLabelValues(string(result)) // A rate needs a zero to start from.
	}
}

// setMetrics sets the metrics of an Eru to a decision.
func setMetrics(obj *mtsrev1.Eru, d decision) {
	for _, entry := range d.entries {
		restarts.WithLabelValues(string(entry.Result)).Inc()
	}
	name := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}
	if d.next.IsZero() {
		nextRestarts.remove(name)
		return
	}
	nextRestarts.set(name, d.next)
}

// deleteMetrics deletes the metrics of an Eru that was deleted, or that cannot be decoded.
func deleteMetrics(name types.NamespacedName) { nextRestarts.remove(name) }
