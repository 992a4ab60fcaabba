// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults puts what goes wrong between a controller and the API server into
// tests: a proxy with late answers, a transport that loses, refuses and holds back
// what a plan says, and an observer that counts what came of it.
package faults
