// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eru says what an Eru may be: its defaults and its rules. All of it is
// pure: a clock is handed in. Admission runs them, and the controller runs them
// again in memory before it acts, so an object that was stored while the webhook
// was away is handled the same way.
package eru
