// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trigger defines what starts a reconcile: the predicates that filter watch
// events, the event handlers that map an object to the objects to reconcile, the filter
// for events that the controller's own writes cause, the order in which objects are
// reconciled, and the back-off after an error.
package trigger
