// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app holds admission's defaults and rules for Apps.
package app
