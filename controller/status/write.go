// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/limit"
)

// Writer writes the status of an object in one reconcile.
type Writer struct {
	// Owner is the object as what the other writes of the reconcile count for.
	Owner *limit.Owner

	client client.Client
	obj    Object
	// stored is the status that the API server has, in JSON.
	stored []byte
}

// errStale reports that the API server has a newer version of the object than the cache.
var errStale = errors.New("the informer cache does not have the last change of the object yet")

// WriteFirst writes the status that the object has now, whether it differs or not. It is called
// before a write to an object that is not a child, and which therefore has no annotation that names
// the generation it was written for: an object that has changed since it entered the cache (another
// spec, or the status of another leader) causes a conflict, so that nothing is written to the other
// one. Reconcile returns the error as it is.
func (w *Writer) WriteFirst(ctx context.Context) error {
	after, err := encode(w.obj)
	if err != nil {
		return fmt.Errorf("encoding status: %w", err)
	}
	// The client decodes the response into the object that it is given, and obj has defaults
	// that are not stored.
	response := w.obj.DeepCopyObject().(client.Object)
	if err := w.write(ctx, response, w.stored, after); err != nil {
		return err
	}
	w.obj.SetResourceVersion(response.GetResourceVersion())
	w.stored = after
	return nil
}

// write writes what differs between two states of a status, as JSON, to the version of obj
// that was read, and decodes the response into obj. It returns errStale if the API server has
// another version.
func (w *Writer) write(ctx context.Context, obj client.Object, before, after []byte, with ...client.SubResourcePatchOption) error {
	difference, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return fmt.Errorf("comparing status: %w", err)
	}
	body := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"status":%s}`, obj.GetResourceVersion(), difference)
	err = w.client.Status().Patch(ctx, obj, client.RawPatch(types.MergePatchType, body), append(with, w.Owner)...)
	if apierrors.IsConflict(err) {
		return errStale
	}
	if err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	return nil
}

// encode returns the status of an object, as it can be stored, in JSON.
func encode(obj Object) ([]byte, error) {
	clamp(reflect.ValueOf(obj.GetStatus()).Elem())
	return json.Marshal(obj.GetStatus())
}
