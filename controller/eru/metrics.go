// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/decode"
)

var (
	nextRestart = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "modelbox_eru_next_restart_timestamp_seconds",
		Help: "Unix time of the first slot of an Eru that is not decided on, without jitter. In the past if that slot waits.",
	}, []string{"namespace", "name"})

	restarts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "modelbox_eru_restarts_total",
		Help: "Slots decided on, by result (Restarted, Skipped, Failed). One whose status could not be written counts again.",
	}, []string{"result"})

	lateness = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "modelbox_eru_restart_lateness_seconds",
		Help:    "Time from a slot to its restart, jitter included.",
		Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 21600, 86400},
	})
)

func init() {
	metrics.Registry.MustRegister(nextRestart, restarts, lateness)
	for _, result := range []mtsrev1.EruResult{mtsrev1.EruRestarted, mtsrev1.EruSkipped, mtsrev1.EruResultFailed} {
		restarts.WithLabelValues(string(result)) // A rate needs a zero to start from.
	}
}

// observe puts a decision into the metrics.
func observe(obj *mtsrev1.Eru, d decision) {
	for _, entry := range d.entries {
		restarts.WithLabelValues(string(entry.Result)).Inc()
	}
	if d.next.IsZero() {
		nextRestart.DeleteLabelValues(obj.Namespace, obj.Name)
		return
	}
	nextRestart.WithLabelValues(obj.Namespace, obj.Name).Set(float64(d.next.Unix()))
}

// measured drops the metrics of an Eru that is gone, or that cannot be decoded.
func measured(c client.Reader, inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		obj := &mtsrev1.Eru{}
		if err := c.Get(ctx, req.NamespacedName, obj); apierrors.IsNotFound(err) || decode.FailureOf(obj) != nil {
			nextRestart.DeleteLabelValues(req.Namespace, req.Name)
		}
		return inner.Reconcile(ctx, req)
	})
}
