// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// probeLabel selects the object of a probe. No other object has its value, so the
	// configuration of a probe has no effect on the users of the cluster.
	probeLabel = "modelbox-operator/probe"
	// probeWebhook is the name of its webhook, which the API server mentions in its errors.
	probeWebhook = "probe.modelbox.model.github.com"
	// probedPath and probed are the webhook that is tried, and its kind.
	probedPath = "/mutate-model-github-com-v1-modelbox"

	// probeWithin is how long API servers may take until they use a new configuration.
	probeWithin = 20 * time.Second
	probeEvery  = 100 * time.Millisecond
)

// ErrUnreachable is the error of an API server that cannot call the webhook.
var ErrUnreachable = errors.New("the API server cannot call the webhook")

// Reachable tries whether the API server can call the webhook at endpoint: it creates a webhook
// configuration for a single object, creates a ModelBox in a dry run, and looks whether the
// webhook has set its defaults. It removes the configuration again. objects are those of
// config/webhook. The error is [ErrUnreachable] if the API server says that the call failed;
// any other error leaves it unknown.
func (r *Run) Reachable(ctx context.Context, objects []*unstructured.Unstructured, endpoint Endpoint, namespace string) (err error) {
	configuration, err := r.probe(objects, endpoint)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Remove(ctx)) }()
	if err := r.create(ctx, configuration); err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, probeEvery, probeWithin, true, func(ctx context.Context) (bool, error) {
		var defaulted bool
		defaulted, last = r.tryCreate(ctx, namespace)
		if last != nil && strings.Contains(last.Error(), fmt.Sprintf("calling webhook %q", probeWebhook)) {
			return false, fmt.Errorf("%w: %w", ErrUnreachable, last)
		}
		return defaulted, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return errors.Join(fmt.Errorf("the API server did not call the webhook within %s", probeWithin), last)
	}
	return err
}

// probe returns the webhook configuration of a probe.
func (r *Run) probe(objects []*unstructured.Unstructured, endpoint Endpoint) (*unstructured.Unstructured, error) {
	own, err := r.Own(OfKind(objects, "MutatingWebhookConfiguration"))
	if err != nil {
		return nil, err
	}
	for _, configuration := range own {
		all, _, _ := unstructured.NestedSlice(configuration.Object, "webhooks")
		for _, one := range all {
			webhook, ok := one.(map[string]any)
			if path, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "path"); !ok || path != probedPath {
				continue
			}
			webhook["name"] = probeWebhook
			webhook["objectSelector"] = map[string]any{"matchLabels": map[string]any{probeLabel: r.id}}
			configuration.SetName(configuration.GetName() + "-probe")
			if err := unstructured.SetNestedSlice(configuration.Object, []any{webhook}, "webhooks"); err != nil {
				return nil, err
			}
			return pointAt(configuration, endpoint)
		}
	}
	return nil, fmt.Errorf("config/webhook has no mutating webhook with the path %s: run make generate", probedPath)
}

// tryCreate creates a ModelBox in a dry run, which stores nothing, and reports whether the webhook
// has set its defaults. It sets defaultProbes in every ModelBox, and the schema does not.
func (r *Run) tryCreate(ctx context.Context, namespace string) (bool, error) {
	box := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"image": "probe:1"}}}
	box.SetAPIVersion("model.github.com/v1")
	box.SetKind("ModelBox")
	box.SetNamespace(namespace)
	box.SetName("modelbox-probe-" + r.id)
	box.SetLabels(map[string]string{probeLabel: r.id})
	if err := r.c.Create(ctx, box, client.DryRunAll, client.FieldOwner(fieldManager)); err != nil {
		return false, err
	}
	set, _, err := unstructured.NestedString(box.Object, "spec", "defaultProbes")
	return set != "", err
}
