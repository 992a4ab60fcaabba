// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// maxSeries is the number of Erus that have a time series of their own. Users decide how
// many Erus there are, and the memory of Prometheus grows with each series.
const maxSeries = 1000

// schedule is a prometheus.Collector of the next scheduled times of Erus. The first
// maxSeries Erus have a series each, and keep it until they are deleted or disabled: if it
// were always the Erus that are due next, other ones every minute, there would soon be as
// many series as Erus. The earliest of all scheduled times is a series of its own, so that
// an alert sees the Erus without a series too. The zero value is ready for use.
type schedule struct {
	mu   sync.Mutex
	next map[types.NamespacedName]time.Time
	own  sets.Set[types.NamespacedName]
}

var (
	nextRestart = prometheus.NewDesc("modelbox_eru_next_restart_timestamp_seconds",
		"Unix time of the first scheduled time of an Eru that is not decided, without jitter. In the past while that restart waits. At most 1,000 Erus have one.",
		[]string{"namespace", "name"}, nil)

	earliestRestart = prometheus.NewDesc("modelbox_eru_earliest_restart_timestamp_seconds",
		"The earliest of the times of modelbox_eru_next_restart_timestamp_seconds, of all Erus, including those that have none of their own.", nil, nil)
)

// set sets the next scheduled time of an Eru.
func (s *schedule) set(name types.NamespacedName, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next, s.own = map[types.NamespacedName]time.Time{}, sets.Set[types.NamespacedName]{}
	}
	s.next[name] = next
	if len(s.own) < maxSeries {
		s.own.Insert(name)
	}
}

// remove removes an Eru that has no next scheduled time. Another one gets its series the
// next time it is reconciled, in five minutes at the latest.
func (s *schedule) remove(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.next, name)
	s.own.Delete(name)
}

// Describe implements prometheus.Collector.
func (s *schedule) Describe(descs chan<- *prometheus.Desc) {
	descs <- nextRestart
	descs <- earliestRestart
}

// Collect implements prometheus.Collector.
func (s *schedule) Collect(values chan<- prometheus.Metric) {
	for _, value := range s.collect() {
		values <- value
	}
}

func (s *schedule) collect() []prometheus.Metric {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.next) == 0 {
		return nil
	}
	out := make([]prometheus.Metric, 0, len(s.own)+1)
	var earliest time.Time
	for name, next := range s.next {
		if earliest.IsZero() || next.Before(earliest) {
			earliest = next
		}
		if s.own.Has(name) {
			out = append(out, gauge(nextRestart, next, name.Namespace, name.Name))
		}
	}
	return append(out, gauge(earliestRestart, earliest))
}

func gauge(desc *prometheus.Desc, at time.Time, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(at.Unix()), labels...)
}
