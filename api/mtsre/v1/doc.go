// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the v1 version of the API group mtsre.meitu.com.
//
// +kubebuilder:object:generate=true
// +groupName=mtsre.meitu.com
package v1
