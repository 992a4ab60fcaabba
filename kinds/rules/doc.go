// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rules holds the validation rules that several kinds share, one file a subject.
// All of them are pure functions: a rule neither changes its arguments nor calls a cluster.
//
// A rule returns every error that it finds, each at the exact path of the field, with a
// sentence that says what to do. It refuses what the CRD's schema refuses, because admission
// runs before the schema's validation, and of an object's own fields what the API server
// would refuse in the children: an error at the field is of more use than one in the
// object's status a second later. The rules of ports are in package ports, those of pod
// templates in package podtemplate, with those of Kubernetes.
package rules
