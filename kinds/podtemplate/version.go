// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import "k8s.io/component-base/version"

// Kubernetes is the minor version of Kubernetes that this release is built for: that of
// the types and the validation in the k8s.io modules of go.mod.
const Kubernetes = version.DefaultKubeBinaryVersion
