// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests every kind end to end on a real cluster: a kind cluster with
// cert-manager, the images built from the Dockerfiles, and the operator deployed
// from config/ as a user would deploy it, or both from the files of a release. "make e2e" runs it.
package e2e
