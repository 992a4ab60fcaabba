// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificate issues and renews the serving certificate of the webhook, where
// cert-manager does not. The leader keeps it in one Secret, and the CA that verifies it in
// caBundle of the two webhook configurations.
//
// Each certificate has a CA of its own, whose key exists only while it signs: nothing that is
// stored can sign another certificate. So each renewal changes what the API servers trust, and
// what the pods serve. An API server receives a new caBundle by its informer, and a pod a new
// certificate by its kubelet, each with a delay of its own. The steps of a renewal make every
// combination valid:
//
//  1. stage: a new pair is in the Secret beside the one that is served, and ca.crt has both CAs.
//  2. trust: both configurations have the bundle ca.crt.
//  3. serve, when all API servers have the bundle: the new pair becomes tls.crt and tls.key.
//  4. retire, when all pods have the new pair: ca.crt, and then the configurations, have the
//     new CA only.
//
// The state is in the Secret alone. How long a state has lasted is measured by the process, on a
// monotonic clock: after a restart it begins at zero, so a step is later and never earlier. The
// decisions are a pure function, in decide.go.
//
// It is our own because github.com/open-policy-agent/cert-controller (v0.16.0), which most
// operators without cert-manager use, writes the Secret and a caBundle with only the new CA at the
// same time, so that the API server refuses the pods' certificate until kubelet has updated them.
// It also stores the key of the CA, checks by a ticker, replaces the configurations as a whole, and is
// built for an earlier controller-runtime. It could take this package's place when it keeps the
// earlier CA in the bundle.
package certificate
