// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const otherManager = client.FieldOwner("another-manager")

// errNoSuchRequest reports that an edit cannot be written by a form of request.
var errNoSuchRequest = errors.New("no request of this form can write the edit")

// A write stores the result of an edit of an object.
type write func(ctx context.Context, s schemas, c client.Client, before, after tree) error

// requestForms are the requests by which another field manager may write an edit.
var requestForms = map[string]write{"update": update, "merge patch": mergePatch, "strategic patch": strategicPatch, "apply": applyEdit}

func update(ctx context.Context, _ schemas, c client.Client, _, after tree) error {
	return c.Update(ctx, &unstructured.Unstructured{Object: copied(after).(tree)}, otherManager)
}

func mergePatch(ctx context.Context, _ schemas, c client.Client, before, after tree) error {
	was, is, err := encoded(before, after)
	if err != nil {
		return err
	}
	patch, err := jsonpatch.CreateMergePatch(was, is)
	if err != nil {
		return err
	}
	return sendPatch(ctx, c, before, types.MergePatchType, patch)
}

func strategicPatch(ctx context.Context, _ schemas, c client.Client, before, after tree) error {
	was, is, err := encoded(before, after)
	if err != nil {
		return err
	}
	typed, err := c.Scheme().New((&unstructured.Unstructured{Object: before}).GroupVersionKind())
	if err != nil {
		return err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(was, is, typed)
	if err != nil {
		return errNoSuchRequest // Such as an item without the key of its list.
	}
	return sendPatch(ctx, c, before, types.StrategicMergePatchType, patch)
}

func sendPatch(ctx context.Context, c client.Client, before tree, form types.PatchType, patch []byte) error {
	if string(patch) == "{}" {
		return errNoSuchRequest
	}
	return c.Patch(ctx, &unstructured.Unstructured{Object: copied(before).(tree)}, client.RawPatch(form, patch), otherManager)
}

func encoded(before, after tree) (was, is []byte, err error) {
	if was, err = json.Marshal(before); err == nil {
		is, err = json.Marshal(after)
	}
	return was, is, err
}

// applyEdit sends a server-side apply of the fields that the edit changed and added. A removal
// cannot be applied in one request: see applyRemoval.
func applyEdit(ctx context.Context, s schemas, c client.Client, before, after tree) error {
	applied := s.toApply(s.typeOf(before), before, after)
	if applied == nil {
		return errNoSuchRequest
	}
	return sendApply(ctx, c, before, applied.(tree))
}

func sendApply(ctx context.Context, c client.Client, before, applied tree) error {
	body := copied(applied).(tree)
	was := &unstructured.Unstructured{Object: before}
	configuration := &unstructured.Unstructured{Object: body}
	configuration.SetGroupVersionKind(was.GroupVersionKind())
	configuration.SetNamespace(was.GetNamespace())
	configuration.SetName(was.GetName())
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(configuration), otherManager, client.ForceOwnership)
}

// applyRemoval takes the ownership of a field by applying another value, and then applies
// without it: this is how a field manager removes a field that it did not set.
func applyRemoval(ctx context.Context, s schemas, c client.Client, before, changed tree) error {
	if err := applyEdit(ctx, s, c, before, changed); err != nil {
		return err
	}
	return sendApply(ctx, c, before, tree{})
}

// toApply returns the fields of an object that differ from before, nil if there are none, with
// the keys of the list items on their paths, and complete atomic values.
func (s schemas) toApply(t *typeSchema, before, after any) any {
	if after == nil || reflect.DeepEqual(before, after) {
		return nil
	}
	if before == nil || t.scalar() || t.atomic() {
		return after
	}
	switch after := after.(type) {
	case tree:
		if before, ok := before.(tree); ok {
			return s.objectToApply(t, before, after)
		}
	case []any:
		if before, ok := before.([]any); ok {
			return s.listToApply(t, before, after)
		}
	}
	return after
}

func (s schemas) objectToApply(t *typeSchema, before, after tree) any {
	part := tree{}
	for key, value := range after {
		if changed := s.toApply(s.child(t, key), before[key], value); changed != nil {
			part[key] = changed
		}
	}
	if len(part) == 0 {
		return nil
	}
	return part
}

func (s schemas) listToApply(t *typeSchema, before, after []any) any {
	rest := slices.Clone(before)
	var part []any
	for _, item := range after {
		key := keyOf(t.ListKeys, item)
		i := slices.IndexFunc(rest, func(other any) bool { return keyOf(t.ListKeys, other) == key })
		if i < 0 {
			part = append(part, item)
			continue
		}
		changed := s.toApply(s.of(t.Items), rest[i], item)
		rest = slices.Delete(rest, i, i+1)
		if changed == nil {
			continue
		}
		if changed, ok := changed.(tree); ok {
			for _, name := range t.ListKeys {
				if value, set := item.(tree)[name]; set {
					changed[name] = value
				}
			}
		}
		part = append(part, changed)
	}
	if part == nil {
		return nil
	}
	return part
}

// typeOf returns the type of a whole object.
func (s schemas) typeOf(object tree) *typeSchema {
	kind := (&unstructured.Unstructured{Object: object}).GroupVersionKind()
	groups := strings.Split(kind.Group, ".")
	slices.Reverse(groups)
	group := strings.Join(groups, ".")
	switch group {
	case "":
		group = "io.k8s.api.core"
	case "apps":
		group = "io.k8s.api.apps"
	}
	return s[group+"."+kind.Version+"."+kind.Kind]
}
