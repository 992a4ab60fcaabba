// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package patch records the defaults that are set in an object, as operations of a JSON
// patch (RFC 6902), so that an admission response carries the defaults and nothing
// else: a field that a user set is never sent back, so it cannot be rewritten.
//
// A default is one line,
//
//	patch.Set(ops, "/spec/replicas", &spec.Replicas, new(int32(1)))
//
// and the same line runs where no patch is needed: a nil *Ops records nothing.
package patch
