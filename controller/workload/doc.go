// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload builds the children that several kinds share, a pod template,
// a Deployment and a Service, and reads a Deployment's progress. All of it is
// pure: nothing here talks to a cluster.
package workload
