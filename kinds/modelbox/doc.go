// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelbox holds the defaults and the validation of ModelBoxes. Both are pure
// functions of the object. Admission runs them, and the controller runs them again in memory
// before it reconciles, so that an object which was stored without admission is handled in the
// same way.
package modelbox

// AppName is the value of the label app.kubernetes.io/name on all children.
const AppName = "modelbox"
