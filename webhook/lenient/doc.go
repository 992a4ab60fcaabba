// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lenient decodes JSON of which some values do not fit their Go type: without
// them, and with an error for each. So one wrong value does not hide what is wrong
// with the others, neither from the person who wrote them nor from the comparison of
// an object with the stored one.
package lenient
