// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patch writes what differs between two states of a status, and decodes the API server's
// response into obj. locked makes the object's resourceVersion a precondition: an older one
// causes a conflict.
func patch(ctx context.Context, c client.Client, obj Object, before, after []byte, locked bool) error {
	body, err := operations(obj, before, after, locked)
	if err != nil {
		return err
	}
	return explained(c.Status().Patch(ctx, obj, client.RawPatch(types.JSONPatchType, body)))
}

// operations returns the JSON patch that changes a status. It tests the uid: otherwise an
// object that was deleted and created again with the same name would get the status of its
// predecessor. Only a JSON patch can test it, because the API server ignores a uid in the
// body of a request for the status of a custom resource.
func operations(obj Object, before, after []byte, locked bool) ([]byte, error) {
	list := []operation{{"test", "/metadata/uid", obj.GetUID()}}
	if locked {
		list = append(list, operation{"replace", "/metadata/resourceVersion", obj.GetResourceVersion()})
	}
	changes, err := changed(before, after)
	if err != nil {
		return nil, fmt.Errorf("comparing status: %w", err)
	}
	body, err := json.Marshal(append(list, changes...))
	if err != nil {
		return nil, fmt.Errorf("encoding a patch of status: %w", err)
	}
	return body, nil
}

// explained adds the meaning of an operation that failed. The API server's response to it,
// 422 without the kind of an object, does not name the operation.
func explained(err error) error {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Code != http.StatusUnprocessableEntity {
		return err
	}
	if details := answer.Status().Details; details != nil && details.Kind != "" {
		return err // It is about the status.
	}
	return fmt.Errorf("the cache is behind: the API server has another object of this name, or another status: %w", err)
}

// changed returns one operation for each member of a status that differs.
func changed(before, after []byte) ([]operation, error) {
	var was, is map[string]json.RawMessage
	if err := json.Unmarshal(before, &was); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(after, &is); err != nil {
		return nil, err
	}
	// A status without conditions was never written, or could not be decoded, so there is none
	// to add a member to.
	if _, written := was["conditions"]; !written {
		return []operation{{"add", "/status", is}}, nil
	}
	var out []operation
	for _, member := range slices.Sorted(maps.Keys(is)) {
		if !bytes.Equal(was[member], is[member]) {
			out = append(out, operation{"add", "/status/" + member, is[member]})
		}
	}
	for _, member := range slices.Sorted(maps.Keys(was)) {
		if _, stays := is[member]; !stays {
			out = append(out, operation{Op: "remove", Path: "/status/" + member})
		}
	}
	return out, nil
}
