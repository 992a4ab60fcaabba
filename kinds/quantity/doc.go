// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quantity finds quantities in JSON that are too expensive to decode.
//
// A quantity is a number of unlimited precision with an exponent. Decoding "1e-999999999",
// and comparing "1e999999999" with any quantity, computes 10 to the power of a billion: that
// takes minutes of CPU time and hundreds of megabytes. So does the validation of a resource
// with the name hugepages-1e999999999. The schemas allow two digits in an exponent, but they
// do not apply to a pod template, and an object may be older than its schema.
package quantity
