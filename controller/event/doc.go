// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package event bounds the events that the controllers emit. An event is a request to the API
// server, so what a client of the cluster can cause, such as a spec that changes a hundred times
// a second, must not cause one each time.
package event
