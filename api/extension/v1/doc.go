// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the v1 version of the API group extension.k8s.io.
//
// +kubebuilder:object:generate=true
// +groupName=extension.k8s.io
package v1
