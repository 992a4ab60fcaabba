// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/modelbox-operator/modelbox-operator/internal/tracing"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

// traced returns a manager whose webhook server makes a span of each review, and mgr itself if
// there is no provider.
func traced(mgr manager.Manager, provider *tracing.Provider) manager.Manager {
	if provider == nil {
		return mgr
	}
	return tracedManager{mgr, provider}
}

type tracedManager struct {
	manager.Manager
	provider *tracing.Provider
}

// GetWebhookServer implements manager.Manager.
func (m tracedManager) GetWebhookServer() ctrlwebhook.Server {
	return tracedServer{m.Manager.GetWebhookServer(), m.provider}
}

type tracedServer struct {
	ctrlwebhook.Server
	provider *tracing.Provider
}

// Register implements webhook.Server.
func (s tracedServer) Register(path string, hook http.Handler) {
	if webhook, ok := hook.(*admission.Webhook); ok {
		hook = admission.Traced(webhook, s.provider.Tracer(), tracing.Propagator)
	}
	s.Server.Register(path, hook)
}
