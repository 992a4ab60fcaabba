// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admit serves a kind's pure functions as admission webhooks: one that
// defaults, and one that validates.
//
// It is the project's own handler, not controller-runtime's, because of what
// an admission costs. The typed defaulter decodes an object into two forms,
// copies it, marshals the whole of it and compares the texts; here a review is
// read once, the object is decoded once into its type, and what defaulting wrote
// has been recorded as it was written (package patch).
//
// Both webhooks are free of side effects: what is filled in and what is refused
// depends on the request alone, so a dry run is answered like any other request,
// and a webhook may be called again (reinvocationPolicy) with the same outcome.
package admit
