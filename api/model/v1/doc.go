// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the v1 version of the API group model.github.com.
//
// +kubebuilder:object:generate=true
// +groupName=model.github.com
package v1
