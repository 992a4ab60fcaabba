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

// patch writes what has changed in a status, from said to says, and fills obj with the
// answer. With locked it has the object's resourceVersion as precondition: an older one
// is a conflict.
func patch(ctx context.Context, c client.Client, obj Object, said, says []byte, locked bool) error {
	body, err := operations(obj, said, says, locked)
	if err != nil {
		return err
	}
	return explained(c.Status().Patch(ctx, obj, client.RawPatch(types.JSONPatchType, body)))
}

// operations is the JSON patch that changes a status from said to says. It tests the
// uid, or an object that was deleted and created again under the same name would get its
// predecessor's status: only a JSON patch can do so, since for the status of a custom
// resource the API server ignores a uid in the body.
func operations(obj Object, said, says []byte, locked bool) ([]byte, error) {
	list := []operation{{"test", "/metadata/uid", obj.GetUID()}}
	if locked {
		list = append(list, operation{"replace", "/metadata/resourceVersion", obj.GetResourceVersion()})
	}
	changes, err := changed(said, says)
	if err != nil {
		return nil, fmt.Errorf("comparing status: %w", err)
	}
	body, err := json.Marshal(append(list, changes...))
	if err != nil {
		return nil, fmt.Errorf("encoding a patch of status: %w", err)
	}
	return body, nil
}

// explained adds what a refused operation means. The API server's answer to one, 422 and
// of no kind of object, does not name the operation.
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

// changed are the operations that make says of said, one for each member that differs.
func changed(said, says []byte) ([]operation, error) {
	var was, is map[string]json.RawMessage
	if err := json.Unmarshal(said, &was); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(says, &is); err != nil {
		return nil, err
	}
	// Without conditions status was never written, so there is no status to add a member
	// to, or what is stored there could not be decoded.
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
