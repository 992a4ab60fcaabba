// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deployment is what the kinds share that run a Deployment with a Service, ModelBox
// and App: their watches, and the steps of a reconcile after the spec is validated. Each
// kind's Reconcile calls the steps.
package deployment
