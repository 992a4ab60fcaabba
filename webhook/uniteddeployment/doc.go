// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uniteddeployment holds admission's rules for UnitedDeployments, and who
// holds a Deployment's replica count.
package uniteddeployment
