// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var webhookKinds = []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}

// Endpoint is the address of the webhook process.
type Endpoint struct {
	// URL is its base URL, such as https://127.0.0.1:9443.
	URL string
	// CABundle is the certificate, in PEM, of the authority of its certificate.
	CABundle []byte
}

// Webhooks creates copies of the webhook configurations among objects, as Own describes,
// changed to call endpoint. It fails if there is none. The process must be ready before:
// the API server calls it from now on, and refuses objects if it does not respond.
func (r *Run) Webhooks(ctx context.Context, objects []*unstructured.Unstructured, endpoint Endpoint) error {
	own, err := r.Own(OfKind(objects, webhookKinds...))
	if err != nil {
		return err
	}
	if len(own) == 0 {
		return errors.New("there is no webhook configuration to install: run make generate")
	}
	for i, configuration := range own {
		if own[i], err = pointAt(configuration, endpoint); err != nil {
			return err
		}
	}
	return r.Create(ctx, own)
}

// RemoveWebhooks deletes the webhook configurations among objects from the cluster, so
// that the API server does not call the webhook.
func RemoveWebhooks(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, configuration := range OfKind(objects, webhookKinds...) {
		if err := c.Delete(ctx, configuration.DeepCopy()); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing %s %s: %w", configuration.GetKind(), configuration.GetName(), err)
		}
	}
	return nil
}

// pointAt returns a copy of a configuration that calls a URL instead of a Service, which
// would have no endpoint here.
func pointAt(configuration *unstructured.Unstructured, endpoint Endpoint) (*unstructured.Unstructured, error) {
	local := configuration.DeepCopy()
	webhooks, found, err := unstructured.NestedSlice(local.Object, "webhooks")
	if err != nil || !found {
		return nil, fmt.Errorf("%s %s has no webhooks", local.GetKind(), local.GetName())
	}
	for _, webhook := range webhooks {
		fields, ok := webhook.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s %s has a webhook that is not an object", local.GetKind(), local.GetName())
		}
		path, _, _ := unstructured.NestedString(fields, "clientConfig", "service", "path")
		fields["clientConfig"] = map[string]any{
			"url":      endpoint.URL + "/" + strings.TrimPrefix(path, "/"),
			"caBundle": base64.StdEncoding.EncodeToString(endpoint.CABundle),
		}
	}
	return local, unstructured.SetNestedSlice(local.Object, webhooks, "webhooks")
}
