// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eru holds the defaults and the validation of Erus. All functions are pure: the time
// is an argument. Admission runs them, and the controller runs them again in memory before it
// reconciles, so that an object which was stored without admission is handled in the same way.
package eru
