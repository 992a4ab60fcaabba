// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cache returns the controller's informer cache: controller-runtime's, with another
// decoder for custom resources, and with objects that are trimmed and packed. No kind knows
// of it: readers get ordinary objects. To use controller-runtime's own cache instead, remove
// NewCache in controller/main.go, which is one line. The suite of the controller runs in
// this mode as well (CACHE=stock), except for the specs with the label "cache", which test
// what this package adds.
//
// # Decoding
//
// An object that cannot be decoded, because it was stored before its schema refused such an
// object, ends client-go's list or watch: no object of its kind is then reconciled any more.
// Here each object is decoded by itself (decoder.go), JSON that is nested too deep is cut
// (depth.go), and an object that cannot be decoded completely has its metadata, the parts
// that could be decoded, and a DecodeError (undecodable.go). Such objects are counted by the
// metric modelbox_undecodable_objects, and logged once (metrics.go).
//
// This decoder also takes less CPU. API servers send custom resources only in JSON, and
// client-go's decoder reads the JSON of each watch event seven times, which was a third of
// the CPU that the controller uses for a new object. This one reads it four times: 19 µs and
// 33 allocations for an event of 1 kB instead of 40 µs and 80 (BenchmarkWatchEvent). It
// saved about 2/9 of the controller's CPU when it was measured.
//
// # Trimming
//
// What no controller reads is removed (trim.go): the field sets of managedFields, kubectl's
// copy of the manifest, and most of the objects that are not children, such as the pod
// templates of other Deployments. These take 0.6 kB each.
//
// # Packing
//
// An object is kept encoded, with the metadata that predicates and event handlers read
// beside it (packed.go, codec.go). A ModelBox, its Deployment and its Service took 21 kB of
// the process's memory as Go values, and take 4.1 kB packed. A read decodes the object
// instead of copying it: 14 µs instead of 3.5 µs for a ModelBox, 8.5 µs instead of 6.2 µs
// for a Deployment.
//
// The objects of a cluster have much in common: the same fields, the same defaults, the same
// images and variables. So each is compressed with the first one of its type as dictionary.
// 1,000 ModelBoxes with their Deployments and Services took 9.3 kB of heap each as Go values,
// 2.3 kB encoded and compressed each by itself, and 1.3 kB with the dictionary, of which the
// encoded objects are 0.2 kB.
package cache
