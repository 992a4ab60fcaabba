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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// notReadyObjects counts the objects of the process that are not ready, and differingObjects those
// whose pods serve different bytes of a model. Only these use memory.
var (
	notReadyObjects = newReasonCounts(ConditionReady, metav1.ConditionTrue, "modelbox_objects_not_ready",
		"Objects whose condition Ready was not True after their last reconcile, by kind and by the reason of the condition. "+
			"Only the leader has series.")
	differingObjects = newReasonCounts(ConditionModelDiffers, metav1.ConditionFalse, "modelbox_objects_model_differs",
		"Objects whose condition ModelDiffers was True after their last reconcile, by kind and by the reason of the condition. "+
			"Only the leader has series.")
)

func init() { metrics.Registry.MustRegister(notReadyObjects.gauge, differingObjects.gauge) }

// reasonCounts counts the objects that have a condition with another status than a normal one.
type reasonCounts struct {
	condition string
	normal    metav1.ConditionStatus
	gauge     *prometheus.GaugeVec

	mu      sync.Mutex
	objects map[objectKey]string
	// reasons has each reason once, and no more than maxReasons: the operator has fewer, and
	// another client could write any text into a status.
	reasons map[string]string
}

const maxReasons = 50

func newReasonCounts(condition string, normal metav1.ConditionStatus, metric, help string) *reasonCounts {
	return &reasonCounts{
		condition: condition, normal: normal,
		gauge:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: metric, Help: help}, []string{"kind", "reason"}),
		objects: map[objectKey]string{}, reasons: map[string]string{},
	}
}

type objectKey struct {
	kind string
	types.NamespacedName
}

// observe counts an object as its conditions are.
func (r *reasonCounts) observe(kind string, obj Object) {
	reason := ""
	if c := meta.FindStatusCondition(obj.GetConditions(), r.condition); c != nil && c.Status != r.normal {
		reason = c.Reason
	}
	r.set(kind, client.ObjectKeyFromObject(obj), reason)
}

// set counts an object for a reason, or no longer if the reason is empty.
func (r *reasonCounts) set(kind string, name types.NamespacedName, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := objectKey{kind, name}
	if before, counted := r.objects[key]; counted {
		r.gauge.WithLabelValues(kind, before).Dec()
		delete(r.objects, key)
	}
	if reason == "" {
		return
	}
	if _, known := r.reasons[reason]; !known && len(r.reasons) >= maxReasons {
		reason = "other"
	}
	if _, known := r.reasons[reason]; !known {
		reason = strings.Clone(reason) // The text is part of the memory of the whole status.
		r.reasons[reason] = reason
	}
	r.objects[key] = r.reasons[reason]
	r.gauge.WithLabelValues(kind, reason).Inc()
}
