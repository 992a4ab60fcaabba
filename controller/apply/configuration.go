// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applyConfiguration is the apply configuration of a desired object, and after the apply it
// has the object in the API server's response.
//
// The client decodes the response into the configuration. The generated ones of client-go
// would keep, in the items of their lists, fields that the response does not have. For an
// unstructured one the client does not wait until the cache shows the write, because the
// cache has typed objects.
type applyConfiguration struct {
	desired, response client.Object
	// ResourceVersion is that of the response. The client gets it by this name, and later
	// reads from the cache wait for it.
	ResourceVersion *string
}

// IsApplyConfiguration implements runtime.ApplyConfiguration.
func (*applyConfiguration) IsApplyConfiguration() {}

// GetName returns the name of the object. With the next three methods the client finds the
// object to apply.
func (c *applyConfiguration) GetName() *string { return new(c.desired.GetName()) }

// GetNamespace returns the namespace of the object.
func (c *applyConfiguration) GetNamespace() *string { return new(c.desired.GetNamespace()) }

// GetKind returns the kind of the object.
func (c *applyConfiguration) GetKind() *string {
	return new(c.desired.GetObjectKind().GroupVersionKind().Kind)
}

// GetAPIVersion returns the API version of the object.
func (c *applyConfiguration) GetAPIVersion() *string {
	return new(c.desired.GetObjectKind().GroupVersionKind().GroupVersion().String())
}

// MarshalJSON encodes the desired object without its status and without the nulls that the
// Go type cannot omit: an apply would own these fields.
func (c *applyConfiguration) MarshalJSON() ([]byte, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.desired)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	removeNulls(content)
	return json.Marshal(content)
}

func removeNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			if member == nil {
				delete(value, key)
			}
			removeNulls(member)
		}
	case []any:
		for _, item := range value {
			removeNulls(item)
		}
	}
}

// UnmarshalJSON decodes the response.
func (c *applyConfiguration) UnmarshalJSON(data []byte) error {
	c.response = reflect.New(reflect.TypeOf(c.desired).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(data, c.response); err != nil {
		return err
	}
	c.ResourceVersion = new(c.response.GetResourceVersion())
	return nil
}
