// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelbox says what a ModelBox may be: its defaults and its rules. Both
// are pure functions of the object. Admission runs them, and the controller runs
// them again in memory before it acts, so an object that was stored while the
// webhook was away is handled the same way.
package modelbox

// AppName is the value of the label app.kubernetes.io/name on all children.
const AppName = "modelbox"
