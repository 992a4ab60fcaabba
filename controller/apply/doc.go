// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply writes children: the objects that an owner controls. It creates a child that
// does not exist, applies one whose observed state is not the desired state, deletes one that
// is no longer desired, and does not change objects of other owners.
//
// A child is created by a plain create, because a server-side apply would merge into an
// object of another owner that was created meanwhile. Every later write is a server-side
// apply with the uid and the resource version of the child as preconditions. The fields of a
// plain create belong to an Update entry of metadata.managedFields, from which an apply
// removes nothing, so this entry is changed into an Apply entry before the first apply
// (KEP-555 and k8s.io/client-go/util/csaupgrade).
//
// A child whose hash is that of the desired state is compared with it field by field
// (compare.go, by the tables in schema.go), without a request. Where they differ, its
// managedFields show the reason (ownership.go): a field that another field manager modified
// is reverted (repair.go), within limits (memory.go); a value that admission rewrote is
// reported and not written again.
package apply
