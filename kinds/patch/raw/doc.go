// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package raw reads single values out of JSON without decoding the rest: no
// memory, and one pass over no more of the text than is needed. What Find returns
// is a part of the text, not a copy.
//
// Every document must be valid JSON: reading relies on its grammar and checks no
// bounds. Of a key that is repeated, Find sees
// the first.
package raw
