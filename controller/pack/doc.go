// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pack keeps the objects of a cache encoded. As Go values, with a map for
// each set of labels and a string for each word, a Deployment and a Service take ten
// times what they say; a controller that reads each of them once in a while need not
// hold them open. A cache that holds packed objects hands out ordinary ones, because
// the copy that a reader gets is what is opened.
//
// Most objects of a cluster are much alike: the same fields, the same defaults, the
// same team's images and variables. So each is compressed against one of its sort,
// which makes them a quarter as long again.
package pack
