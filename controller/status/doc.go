// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status says what was seen of an object, and records it once a
// reconcile, last, and only when it differs.
package status
