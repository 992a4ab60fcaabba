// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
)

// nextRestarts reports the next scheduled times of the Erus of the process.
var nextRestarts = newSchedule()

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

	earliestRestart = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "modelbox_eru_earliest_restart_timestamp_seconds",
		Help: "The earliest of the times of modelbox_eru_next_restart_timestamp_seconds, of all Erus, including those that have none of their own. NaN without Erus.",
	}, nextRestarts.earliest)
)

func init() {
	metrics.Registry.MustRegister(nextRestarts.gauge, earliestRestart, restarts, lateness)
	for _, result := range []mtsrev1.EruResult{mtsrev1.EruRestarted, mtsrev1.EruSkipped, mtsrev1.EruResultFailed} {
		restarts.WithLabelValues(string(result)) // A rate needs a zero to start from.
	}
}

// setMetrics sets the metrics of an Eru to a decision.
func setMetrics(obj *mtsrev1.Eru, d decision) {
	for _, entry := range d.entries {
		restarts.WithLabelValues(string(entry.Result)).Inc()
	}
	name := client.ObjectKeyFromObject(obj)
	if d.next.IsZero() {
		nextRestarts.remove(name)
		return
	}
	nextRestarts.set(name, d.next)
}

// maxSeries is the number of Erus that have a time series of their own. Users decide how
// many Erus there are, and the memory of Prometheus grows with each series.
const maxSeries = 1000

// schedule has the next scheduled times of Erus. The first maxSeries Erus have a series each, and
// keep it until they are deleted or disabled: if it were always the Erus that are due next, other
// ones every minute, there would soon be as many series as Erus. The earliest of all scheduled
// times is a series of its own, so that an alert sees the Erus without a series too.
type schedule struct {
	mu    sync.Mutex
	next  map[types.NamespacedName]time.Time
	own   sets.Set[types.NamespacedName]
	gauge *prometheus.GaugeVec
}

func newSchedule() *schedule {
	return &schedule{
		next: map[types.NamespacedName]time.Time{}, own: sets.Set[types.NamespacedName]{},
		gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "modelbox_eru_next_restart_timestamp_seconds",
			Help: "Unix time of the first scheduled time of an Eru that is not decided, without jitter. In the past while that restart waits. At most 1,000 Erus have one.",
		}, []string{"namespace", "name"}),
	}
}

// set sets the next scheduled time of an Eru.
func (s *schedule) set(name types.NamespacedName, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[name] = next
	if len(s.own) < maxSeries {
		s.own.Insert(name)
	}
	if s.own.Has(name) {
		s.gauge.WithLabelValues(name.Namespace, name.Name).Set(float64(next.Unix()))
	}
}

// remove removes an Eru that has no next scheduled time. Another one gets its series the
// next time it is reconciled, in five minutes at the latest.
func (s *schedule) remove(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.next, name)
	s.own.Delete(name)
	s.gauge.DeleteLabelValues(name.Namespace, name.Name)
}

// earliest returns the earliest scheduled time in Unix seconds, NaN if there is none.
func (s *schedule) earliest() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.next) == 0 {
		return math.NaN()
	}
	return float64(slices.MinFunc(slices.Collect(maps.Values(s.next)), time.Time.Compare).Unix())
}
