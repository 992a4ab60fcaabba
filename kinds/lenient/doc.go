// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lenient decodes JSON of which some values do not fit their Go type: without
// them, and with an error for each. So one wrong value does not hide the errors
// of others, neither from the user who wrote them nor from the comparison of an object
// with the stored one (ratcheting validation).
package lenient
