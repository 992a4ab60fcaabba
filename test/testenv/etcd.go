// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// prefixes are where the API server stores the objects of a kind in etcd, below /registry.
var prefixes = map[string]string{
	"ModelBox":      "model.github.com/modelboxes",
	"App":           "app.huolala.cn/apps",
	"Genericdaemon": "mydomain.com/genericdaemons",
	"Deployment":    "deployments",
	"DaemonSet":     "daemonsets",
	"Service":       "services/specs",
}

// Store writes an object to etcd, past the API server: with its uid, generation, status and
// managedFields, whatever admission and the schema say, and instead of an object of that name.
// It returns the resourceVersion of the object. The API server may serve an older version for a
// moment.
func (e *Env) Store(ctx context.Context, obj *unstructured.Unstructured) (string, error) {
	prefix, ok := prefixes[obj.GetKind()]
	if !ok {
		return "", fmt.Errorf("storing a %s: its prefix in etcd is not known", obj.GetKind())
	}
	value, err := obj.MarshalJSON()
	if err != nil {
		return "", err
	}
	// etcd's gateway takes and returns bytes in base64, as encoding/json writes them.
	body, err := json.Marshal(map[string][]byte{"key": []byte(path.Join("/registry", prefix, obj.GetNamespace(), obj.GetName())), "value": value})
	if err != nil {
		return "", err
	}
	return e.put(ctx, body)
}

func (e *Env) put(ctx context.Context, body []byte) (revision string, err error) {
	url := e.env.ControlPlane.Etcd.URL.JoinPath("v3/kv/put").String()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("writing to etcd: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct{ Header struct{ Revision string } }
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("writing to etcd: %s", response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return "", fmt.Errorf("reading etcd's answer: %w", err)
	}
	return answer.Header.Revision, nil
}
