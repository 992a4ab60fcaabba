// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package genericdaemon holds admission's defaults and rules for Genericdaemons.
package genericdaemon
