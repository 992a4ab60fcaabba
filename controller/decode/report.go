// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

func init() { metrics.Registry.MustRegister(&undecodable) }

// undecodable are the caches in which objects that cannot be decoded are counted.
var undecodable collector

// collector counts, when it is asked, the objects that cannot be decoded.
type collector struct{ caches sync.Map } // Of cache.Indexer, by kind.

var undecodableObjects = prometheus.NewDesc("modelbox_undecodable_objects",
	"Stored objects that cannot be decoded and are therefore not reconciled, by kind.", []string{"kind"}, nil)

// Describe implements prometheus.Collector.
func (c *collector) Describe(descs chan<- *prometheus.Desc) { descs <- undecodableObjects }

// Collect implements prometheus.Collector.
func (c *collector) Collect(values chan<- prometheus.Metric) {
	c.caches.Range(func(kind, store any) bool {
		keys, err := store.(cache.Indexer).IndexKeys(index, marked)
		if err == nil {
			values <- prometheus.MustNewConstMetric(undecodableObjects, prometheus.GaugeValue, float64(len(keys)), kind.(string))
		}
		return true
	})
}

// The index of a cache in which objects that cannot be decoded are, under one value.
const (
	index  = "undecodable"
	marked = "true"
)

func indexMarked(in any) ([]string, error) {
	if obj, ok := in.(client.Object); ok && FailureOf(obj) != nil {
		return []string{marked}, nil
	}
	return nil, nil
}

// reported are the objects that have been logged, with their resource version.
var reported = struct {
	sync.Mutex
	versions map[string]string
}{versions: map[string]string{}}

// report logs that an object cannot be decoded, once for each of its versions: lists
// are repeated.
func report(kind string, obj client.Object, failure *Failure) {
	const most = 10_000
	key := kind + "/" + obj.GetNamespace() + "/" + obj.GetName()
	reported.Lock()
	known := reported.versions[key] == obj.GetResourceVersion()
	if len(reported.versions) >= most {
		clear(reported.versions)
	}
	reported.versions[key] = obj.GetResourceVersion()
	reported.Unlock()
	if !known {
		log.Log.WithName("decode").Error(errors.New(failure.Message), "The stored object cannot be decoded and is not reconciled",
			"kind", kind, "namespace", obj.GetNamespace(), "name", obj.GetName(), "resourceVersion", obj.GetResourceVersion())
	}
}
