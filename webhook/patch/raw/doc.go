// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package raw reads single values out of JSON without decoding the rest: no
// memory, and one pass over no more of the text than is needed. What it returns is
// a part of the text, not a copy.
//
// Every document must be valid JSON, which encoding/json.Valid tells: the grammar
// is then all the bounds that reading needs. Of a key that is repeated, Find sees
// the first.
package raw
