// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package genericdaemon holds the defaults and the validation of Genericdaemons.
package genericdaemon
