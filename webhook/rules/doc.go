// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rules holds the rules that several kinds share, one file a subject. All
// of it is pure: a rule reads what it is given and answers, it neither changes it
// nor asks a cluster.
//
// A rule returns every error that it finds, each at the exact path of the field,
// with a sentence that says the way out. It refuses what the CRD's schema refuses,
// because admission answers first, and of an object's own fields what the API server
// would refuse in the children: an error at the field is worth more than one in the
// object's status a second later. What the API server would have against a pod template,
// package podrules asks the API server's own code.
package rules
