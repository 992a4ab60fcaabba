// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// Webhooks creates or replaces the webhook configurations among objects in the cluster,
// changed to call endpoint. It fails if there is none. The process must be ready before:
// the API server calls it from now on, and refuses objects if it does not respond.
func Webhooks(ctx context.Context, c client.Client, objects []*unstructured.Unstructured, endpoint Endpoint) error {
	configurations := OfKind(objects, webhookKinds...)
	if len(configurations) == 0 {
		return errors.New("there is no webhook configuration to install: run make generate")
	}
	for _, configuration := range configurations {
		local, err := pointAt(configuration, endpoint)
		if err != nil {
			return err
		}
		if err := replace(ctx, c, local); err != nil {
			return err
		}
	}
	return nil
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

// replace creates or updates the complete object. Server-side apply would add the URL to
// a configuration that was deployed with a Service, and the result would have both.
func replace(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	err := c.Create(ctx, object, client.FieldOwner(fieldManager))
	if apierrors.IsAlreadyExists(err) {
		current := object.DeepCopy()
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
			return fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		object.SetResourceVersion(current.GetResourceVersion())
		err = c.Update(ctx, object, client.FieldOwner(fieldManager))
	}
	if err != nil {
		return fmt.Errorf("writing %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
