// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package server is a webhook.Server of controller-runtime that loses no admission
// request when it is replaced, and that bounds what it takes on at once.
//
// The server of controller-runtime closes every idle connection when it shuts down,
// also one that the API server has just sent a request on. The API server does not
// repeat a POST, so the request of a user fails. Server drains instead: see drain.go.
// Its bounds (requests and bytes in flight, timeouts) keep it within the memory of
// its pod when many large objects are written at once.
//
// It can take the place of the server of any manager:
//
//	manager.Options{WebhookServer: server.New(server.Options{CertDir: dir})}
package server
