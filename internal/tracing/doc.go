// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing sends spans of OpenTelemetry to a collector, by OTLP over HTTP.
//
// It is off unless its flags name a collector. A collector that is slow or unavailable delays
// nothing: spans wait in a queue of a fixed length, and those that do not fit into it are dropped.
package tracing
