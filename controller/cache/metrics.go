// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

func init() { metrics.Registry.MustRegister(&undecodable) }

// undecodable reports the objects of the process that cannot be decoded, as a metric and in
// the log.
var undecodable reporter

type reporter struct {
	// indexers are those of the informers, by informerKey.
	indexers sync.Map

	mu sync.Mutex
	// logged are the resource versions of the objects that were logged, by kind, namespace
	// and name.
	logged map[string]string
}

// informerKey identifies an informer: its kind, and its namespace, empty for all.
type informerKey struct{ kind, namespace string }

var undecodableObjects = prometheus.NewDesc("modelbox_undecodable_objects",
	"Stored objects that cannot be decoded and are therefore not reconciled, by kind.", []string{"kind"}, nil)

// Describe implements prometheus.Collector.
func (r *reporter) Describe(descs chan<- *prometheus.Desc) { descs <- undecodableObjects }

// Collect implements prometheus.Collector.
func (r *reporter) Collect(values chan<- prometheus.Metric) {
	counts := map[string]int{}
	r.indexers.Range(func(key, indexer any) bool {
		keys, err := indexer.(toolscache.Indexer).IndexKeys(undecodableIndex, undecodableValue)
		if err == nil {
			counts[key.(informerKey).kind] += len(keys)
		}
		return true
	})
	for kind, count := range counts {
		values <- prometheus.MustNewConstMetric(undecodableObjects, prometheus.GaugeValue, float64(count), kind)
	}
}

// The index of an informer that has the objects that cannot be decoded, under one value.
const (
	undecodableIndex = "undecodable"
	undecodableValue = "true"
)

func indexUndecodable(in any) ([]string, error) {
	if obj, ok := in.(client.Object); ok && DecodeErrorOf(obj) != nil {
		return []string{undecodableValue}, nil
	}
	return nil, nil
}

// maxLogged bounds the number of logged objects that are remembered.
const maxLogged = 10_000

// log logs an object that cannot be decoded, once for each of its versions: an informer
// lists its objects again after a watch failed.
func (r *reporter) log(kind string, obj client.Object, failure *DecodeError) {
	key := kind + "/" + obj.GetNamespace() + "/" + obj.GetName()
	if r.wasLogged(key, obj.GetResourceVersion()) {
		return
	}
	log.Log.WithName("decode").Error(errors.New(failure.Message), "The stored object cannot be decoded and is not reconciled",
		"kind", kind, "namespace", obj.GetNamespace(), "name", obj.GetName(), "resourceVersion", obj.GetResourceVersion())
}

func (r *reporter) wasLogged(key, version string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.logged[key] == version {
		return true
	}
	if r.logged == nil || len(r.logged) >= maxLogged {
		r.logged = map[string]string{}
	}
	r.logged[key] = version
	return false
}
