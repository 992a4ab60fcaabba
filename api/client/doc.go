// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client holds what k8s.io/code-generator writes for the project's
// kinds: clientset, listers, informers and applyconfigurations. All of it is
// made by "make generate"; nothing below is edited by hand.
package client
