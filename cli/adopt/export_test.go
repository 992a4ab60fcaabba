// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

// Unheld is for the tests.
var Unheld = unheld
