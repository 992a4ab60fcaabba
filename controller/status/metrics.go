// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

func init() { metrics.Registry.MustRegister(&notReadyObjects) }

// notReadyObjects reports the objects of the process that are not ready.
var notReadyObjects reasonCounts

// maxReasons bounds the reasons that have series of their own. The operator has fewer; a reason
// that another client writes into a status could be any text.
const maxReasons = 50

// otherReason stands for the reasons beyond maxReasons.
const otherReason = "other"

// reasonCounts is a prometheus.Collector that counts, by kind and reason, the objects whose
// condition Ready was not True after their last reconcile. Only these use memory. The zero value
// is ready for use.
type reasonCounts struct {
	mu      sync.Mutex
	objects map[objectKey]string
	// reasons has each reason once. The text in a status is part of the memory of the whole status.
	reasons map[string]string
}

// objectKey identifies an object of any kind.
type objectKey struct {
	kind string
	types.NamespacedName
}

var notReadyDesc = prometheus.NewDesc("modelbox_objects_not_ready",
	"Objects whose condition Ready was not True after their last reconcile, by kind and by the reason of the condition. "+
		"Only the leader has series.", []string{"kind", "reason"}, nil)

// observe counts an object as its conditions are. It allocates nothing for an object that is
// ready, nor for one whose reason has not changed.
func (r *reasonCounts) observe(kind string, name types.NamespacedName, conditions []metav1.Condition) {
	ready := meta.FindStatusCondition(conditions, ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue {
		r.forget(kind, name)
		return
	}
	r.set(kind, name, ready.Reason)
}

// set counts an object as not ready for a reason.
func (r *reasonCounts) set(kind string, name types.NamespacedName, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects == nil {
		r.objects, r.reasons = map[objectKey]string{}, map[string]string{}
	}
	r.objects[objectKey{kind, name}] = r.intern(reason)
}

func (r *reasonCounts) intern(reason string) string {
	if known, ok := r.reasons[reason]; ok {
		return known
	}
	if len(r.reasons) >= maxReasons {
		return otherReason
	}
	reason = strings.Clone(reason)
	r.reasons[reason] = reason
	return reason
}

// forget counts an object no longer: it is ready, deleted or being deleted.
func (r *reasonCounts) forget(kind string, name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.objects, objectKey{kind, name})
}

// Describe implements prometheus.Collector.
func (r *reasonCounts) Describe(descs chan<- *prometheus.Desc) { descs <- notReadyDesc }

// Collect implements prometheus.Collector.
func (r *reasonCounts) Collect(values chan<- prometheus.Metric) {
	for series, count := range r.count() {
		values <- prometheus.MustNewConstMetric(notReadyDesc, prometheus.GaugeValue, float64(count), series.kind, series.reason)
	}
}

// kindAndReason are the labels of a series.
type kindAndReason struct{ kind, reason string }

func (r *reasonCounts) count() map[kindAndReason]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := map[kindAndReason]int{}
	for object, reason := range r.objects {
		counts[kindAndReason{object.kind, reason}]++
	}
	return counts
}
