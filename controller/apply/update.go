// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/limit"
)

// AnnotationHash holds, on each child, the hash of the desired state that was written last.
// A field that is no longer desired is noticed by it: a comparison alone cannot tell such a
// field from one that another field manager set.
const AnnotationHash = "model.github.com/desired-hash"

// AnnotationGeneration holds, on each child, the generation of the owner for which the child
// was written last. A controller whose cache has an older generation of the owner, such as
// one that lists from an API server which is behind, must not revert the child to it. The
// annotation is written together with other changes only, and is not part of the hash.
const AnnotationGeneration = "model.github.com/owner-generation"

func setGeneration(desired, owner client.Object) {
	setAnnotation(desired, AnnotationGeneration, strconv.FormatInt(owner.GetGeneration(), 10))
}

func setAnnotation(desired client.Object, key, value string) {
	annotations := desired.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	desired.SetAnnotations(annotations)
}

// setHash writes the hash of a desired object into its annotations. It is that of the object in
// protobuf, which encodes equal objects equally. The hash of an object must stay the same in all
// versions of the controller: another one would write all children again after an upgrade.
func setHash(desired client.Object) error {
	encoder, ok := desired.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return fmt.Errorf("%T has no encoding in protobuf", desired)
	}
	data, err := encoder.Marshal()
	if err != nil {
		return fmt.Errorf("hashing %s %q: %w", kindOf(desired), desired.GetName(), err)
	}
	sum := fnv.New64a()
	_, _ = sum.Write(data) // A hash returns no error.
	setAnnotation(desired, AnnotationHash, fmt.Sprintf("%016x", sum.Sum64()))
	return nil
}

// update applies a child as it is in the API server, and not only in the cache. It emits an event
// if another client changed what was written last.
func (w Writer) update(ctx context.Context, owner client.Object, child *Child) error {
	live := newOf(child.Live)
	if err := w.Live.Get(ctx, client.ObjectKeyFromObject(owner), live); err != nil {
		return fmt.Errorf("reading %s %q: %w", kindOf(live), owner.GetName(), err)
	}
	if err := checkOwner(live, child.Desired); err != nil {
		return err
	}
	child.Live = live
	if err := w.checkGeneration(ctx, owner, child); err != nil {
		return err
	}
	found := w.Rewrites.without(owner, live, differences(child.Desired, live))
	if len(found) == 0 {
		return nil
	}
	drifted := live.GetAnnotations()[AnnotationHash] == child.Desired.GetAnnotations()[AnnotationHash]
	setGeneration(child.Desired, owner)
	manager := limit.Manager(live)
	replaced, err := w.repair(ctx, child)
	if contested, ok := errors.AsType[*limit.ContestedError](err); ok {
		contested.Field, contested.Manager = found[0].field, manager
	}
	if err != nil {
		return Refused("applying", child.Desired, err)
	}
	for _, after := range differences(child.Desired, child.Live) {
		found = slices.DeleteFunc(found, func(before difference) bool { return before.field == after.field })
	}
	if drifted && len(found) > 0 {
		w.Recorder.Eventf(owner, nil, corev1.EventTypeNormal, "Repaired", "Apply", "%s %q: reverted %s, modified by %s%s",
			kindOf(live), owner.GetName(), found[0].field, limit.Describe(manager), replaced)
	}
	return nil
}

// repair writes the desired fields of the live child by a forced server-side apply. An apply
// keeps the fields of other managers, and with them the object may be invalid: a second source of
// a volume, a second port of one name. Nor can it remove a value that the desired state leaves
// unset. Then one JSON patch sets and removes what differs. It returns, for an event, the lists
// that the patch replaced.
func (w Writer) repair(ctx context.Context, child *Child) (replaced string, err error) {
	err = w.serverSideApply(ctx, child)
	found := differences(child.Desired, child.Live)
	switch {
	case err == nil:
		// A value that was applied and is not in the response was rewritten by admission.
		found = slices.DeleteFunc(found, func(d difference) bool { return d.want.IsValid() })
	case !apierrors.IsInvalid(err):
		return "", err
	}
	if len(found) == 0 {
		return "", err
	}
	patch, replaced, patchErr := jsonPatch(child.Live, found)
	if patchErr != nil {
		return "", patchErr
	}
	patchErr = w.Client.Patch(ctx, child.Live, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldManager))
	switch {
	case apierrors.IsInvalid(patchErr) && err != nil:
		return "", err
	case patchErr != nil || err == nil:
		return replaced, patchErr
	}
	return replaced, w.serverSideApply(ctx, child) // It removes fields that are no longer desired.
}

// jsonPatch returns a JSON patch of live that sets and removes what differs, with its
// resourceVersion as precondition.
func jsonPatch(live client.Object, found []difference) (patch []byte, replaced string, err error) {
	// A patch of a list makes the paths into it invalid, so it comes after these.
	slices.SortStableFunc(found, func(a, b difference) int {
		return cmp.Or(cmp.Compare(len(b.operation.Path), len(a.operation.Path)), cmp.Compare(a.operation.Path, b.operation.Path))
	})
	operations := []operation{{Op: "test", Path: "/metadata/resourceVersion", Value: live.GetResourceVersion()}}
	for i := range found {
		if o := found[i].operation; o.Path != operations[len(operations)-1].Path {
			operations = append(operations, o)
			if found[i].list != "" {
				replaced += fmt.Sprintf("; replaced %s, with what other field managers added there", found[i].list)
			}
		}
	}
	patch, err = json.Marshal(operations)
	return patch, replaced, err
}

// serverSideApply applies a child to the version that was read. If it has changed since, or was
// replaced, the API server returns a conflict.
func (w Writer) serverSideApply(ctx context.Context, child *Child) error {
	if err := w.upgradeManagedFields(ctx, child.Live); err != nil {
		return err
	}
	versioned := child.Desired.DeepCopyObject().(client.Object)
	versioned.SetUID(child.Live.GetUID())
	versioned.SetResourceVersion(child.Live.GetResourceVersion())
	configuration := &applyConfiguration{desired: versioned}
	if err := w.Client.Apply(ctx, configuration, client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return err
	}
	child.Live = configuration.response
	return nil
}

// upgradeManagedFields changes the Update entry of a plain create, or of a JSON patch, into an
// Apply entry.
func (w Writer) upgradeManagedFields(ctx context.Context, live client.Object) error {
	if !slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
	}) {
		return nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(FieldManager), FieldManager)
	if err != nil || patch == nil {
		return err
	}
	return w.Client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch))
}

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
	content, err := contentOf(c.desired)
	if err != nil {
		return nil, err
	}
	return json.Marshal(content)
}

func contentOf(desired client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	delete(content, "status")
	removeNulls(content)
	return content, err
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
	c.response = newOf(c.desired)
	if err := json.Unmarshal(data, c.response); err != nil {
		return err
	}
	c.ResourceVersion = new(c.response.GetResourceVersion())
	return nil
}

// Manifest returns, as JSON, what the operator applies for a desired child. live is the child
// as it is stored, nil if there is none. It changes neither of them.
func Manifest(desired, live client.Object) ([]byte, error) {
	versioned := desired.DeepCopyObject().(client.Object)
	if err := setHash(versioned); err != nil {
		return nil, err
	}
	if live != nil {
		if generation, ok := live.GetAnnotations()[AnnotationGeneration]; ok {
			versioned.GetAnnotations()[AnnotationGeneration] = generation
		}
	}
	return (&applyConfiguration{desired: versioned}).MarshalJSON()
}
