// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is the v1beta1 version of the API group mydomain.com.
//
// +kubebuilder:object:generate=true
// +groupName=mydomain.com
package v1beta1
