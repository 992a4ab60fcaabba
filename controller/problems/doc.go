// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package problems finds out why the pods of a workload are not available, in the words of
// the cluster. What the pods say is decided by pure functions of the pods and the time (Of
// and what it calls); Looker lists the pods and remembers when it may list them again.
//
// Pods are never cached or watched: they are the most frequent objects of a cluster, and of
// most of them nothing is of interest. An object that is ready costs no request.
package problems
