// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// locked is a client whose patches of a status hold only for the version of the
// object that they were made from. Without that, a controller with a stale cache
// would write an old history over a new one: a list is replaced as a whole.
type locked struct{ client.Client }

// Status is a writer of statuses.
func (c locked) Status() client.SubResourceWriter { return lockedStatus{c.Client.Status()} }

type lockedStatus struct{ client.SubResourceWriter }

// Patch patches a status if the object is still of the version that obj says.
func (s lockedStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.SubResourceWriter.Patch(ctx, obj, lockedPatch{patch}, opts...)
}

// lockedPatch is a merge patch with the object's resourceVersion in it.
type lockedPatch struct{ client.Patch }

// Data is the patch's body.
func (p lockedPatch) Data(obj client.Object) ([]byte, error) {
	data, err := p.Patch.Data(obj)
	if err != nil {
		return nil, err
	}
	if p.Type() == types.JSONPatchType {
		return data, nil // It tests the version itself.
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(data, &body); err != nil {
		return nil, fmt.Errorf("reading a patch of a status: %w", err)
	}
	body["metadata"] = fmt.Appendf(nil, `{"resourceVersion":%q}`, obj.GetResourceVersion())
	return json.Marshal(body)
}
