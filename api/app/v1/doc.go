// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the v1 version of the API group app.huolala.cn.
//
// +kubebuilder:object:generate=true
// +groupName=app.huolala.cn
package v1
