// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply writes children. It creates what is absent, applies what
// differs, leaves what is right, and never touches what is not ours.
//
// A create is a plain create, because a server-side apply would merge into a
// foreign object that appeared meanwhile. Every later write is a server-side
// apply that carries the uid of the child it was decided on. What a plain create
// set belongs to an Update entry of metadata.managedFields, which an apply cannot
// take anything away from, so that entry is made an Apply entry before the first
// apply (KEP-555 and k8s.io/client-go/util/csaupgrade).
package apply
