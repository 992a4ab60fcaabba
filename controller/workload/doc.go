// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload builds the desired objects of the kinds that run pods: the Deployment
// and the Service of a ModelBox and of an App, and the pod template of a Genericdaemon. All
// of it is pure: nothing here reads from or writes to a cluster.
package workload
