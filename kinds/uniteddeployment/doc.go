// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uniteddeployment holds the validation of UnitedDeployments, and the rule of
// which controller may scale a Deployment.
package uniteddeployment
