// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package patch records what defaulting writes into an object, as operations of
// RFC 6902, so that an answer to the API server carries what was filled in and
// nothing else: what a person typed is never sent back, so it cannot be rewritten.
//
// A default is one line,
//
//	patch.Set(ops, "/spec/replicas", &spec.Replicas, new(int32(1)))
//
// and the same line runs where nobody wants a patch: a nil *Ops discards.
package patch
