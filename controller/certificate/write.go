// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fieldOwner owns caBundle and nothing else. The rest of a configuration belongs to the install.
const fieldOwner = client.FieldOwner("modelbox-controller-certificate")

// secretPatch returns a merge patch of the Secret's data, in which nil removes a key. It fails
// with a conflict if the Secret has changed since it was read.
func secretPatch(secret *corev1.Secret, data map[string][]byte, renewed bool) (client.Patch, error) {
	metadata := map[string]any{"resourceVersion": secret.ResourceVersion}
	if _, requested := secret.Annotations[AnnotationRenew]; requested && renewed {
		metadata["annotations"] = map[string]any{AnnotationRenew: nil}
	}
	fields := map[string]any{}
	for key, value := range data {
		if fields[key] = value; value == nil {
			fields[key] = nil
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "data": fields})
	return client.RawPatch(types.MergePatchType, patch), err
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// bundlePatch returns a JSON patch that writes caBundle of the webhooks that have another one,
// nil if none has. With the resource version that was read, the API server answers with a
// conflict if the configuration has changed since, so that the indexes are those of these webhooks.
func bundlePatch(c configuration, bundle []byte) (client.Patch, error) {
	operations := []operation{{"replace", "/metadata/resourceVersion", c.object().GetResourceVersion()}}
	for i, config := range c.clientConfigs() {
		if !bytes.Equal(config.CABundle, bundle) {
			operations = append(operations, operation{"add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), bundle})
		}
	}
	if len(operations) == 1 {
		return nil, nil
	}
	patch, err := json.Marshal(operations)
	return client.RawPatch(types.JSONPatchType, patch), err
}
