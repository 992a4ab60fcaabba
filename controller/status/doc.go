// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status turns the observed state of an object into its conditions, and writes
// its status: once in a reconcile, last, and only when it differs.
package status
