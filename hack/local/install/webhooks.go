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

// Endpoint is where the webhook process listens.
type Endpoint struct {
	// URL is its base, such as https://127.0.0.1:9443.
	URL string
	// CABundle, in PEM, signed its certificate.
	CABundle []byte
}

// Webhooks puts the webhook configurations among objects into the cluster,
// changed to call endpoint, in place of those of the same name. It fails if
// there is none. Let the process be ready first: from here on the API server
// asks it, and refuses objects when it gets no answer.
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

// RemoveWebhooks deletes the webhook configurations among objects from the
// cluster, so that the API server accepts objects unasked.
func RemoveWebhooks(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, configuration := range OfKind(objects, webhookKinds...) {
		if err := c.Delete(ctx, configuration.DeepCopy()); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("removing %s %s: %w", configuration.GetKind(), configuration.GetName(), err)
		}
	}
	return nil
}

// pointAt returns a copy of a configuration that calls a URL where the
// original calls a Service, which has no endpoint here.
func pointAt(configuration *unstructured.Unstructured, endpoint Endpoint) (*unstructured.Unstructured, error) {
	local := configuration.DeepCopy()
	webhooks, found, err := unstructured.NestedSlice(local.Object, "webhooks")
	if err != nil || !found {
		return nil, fmt.Errorf("%s %s has no webhooks", local.GetKind(), local.GetName())
	}
	for _, webhook := range webhooks {
		fields, ok := webhook.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s %s has a webhook that is no object", local.GetKind(), local.GetName())
		}
		path, _, _ := unstructured.NestedString(fields, "clientConfig", "service", "path")
		fields["clientConfig"] = map[string]any{
			"url":      endpoint.URL + "/" + strings.TrimPrefix(path, "/"),
			"caBundle": base64.StdEncoding.EncodeToString(endpoint.CABundle),
		}
	}
	return local, unstructured.SetNestedSlice(local.Object, webhooks, "webhooks")
}

// replace writes the whole object: one that was deployed with a Service would
// merge with an applied URL into a configuration that has both.
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
