// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd has the CRDs of the five kinds, for programs that need them without a cluster.
package crd

import "embed"

// Bases has the manifests of the CRDs in the folder bases, one CRD a file.
//
//go:embed bases/*.yaml
var Bases embed.FS
