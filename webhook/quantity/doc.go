// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quantity finds, in JSON that is still to be decoded, the quantities that
// Go must not decode.
//
// A quantity is a number of unlimited precision with an exponent. Decoding "1e-999999999",
// and comparing "1e999999999" with anything, computes 10 to the power of a billion: that
// takes a processor for minutes and hundreds of megabytes. So does the validation of a
// resource that is called hugepages-1e999999999. The schemas admit two digits
// in an exponent, but they say nothing of a pod template, and an object may be older than
// its schema.
package quantity
