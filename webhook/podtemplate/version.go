// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import "k8s.io/component-base/version"

// Kubernetes is the minor version of Kubernetes whose pods this release knows: the one
// that the types and rules of the k8s.io modules in go.mod belong to.
const Kubernetes = version.DefaultKubeBinaryVersion
