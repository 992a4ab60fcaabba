// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing sends spans of OpenTelemetry to a collector, by OTLP over HTTP.
//
// It is off unless its flags name a collector. Then there is no Provider: no goroutine and no
// connection, and what would make spans is not installed.
//
// A collector that is slow or unavailable delays nothing. Spans wait in a queue of a fixed
// length, and those that do not fit into it, or that the collector does not accept, are dropped.
package tracing
