// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults injects faults between a controller and the API server, for tests: a
// proxy that delays responses, a transport that loses, refuses and delays requests and
// watch events as planned, and an observer that counts the effects.
package faults
