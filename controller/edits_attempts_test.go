// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"hash/fnv"
)

// An attempt is one edit of one child, written by one form of request.
type attempt struct {
	owner       owner
	kind        string
	requestForm string
	*fieldEdit
}

func (a attempt) String() string {
	return fmt.Sprintf("%s %s %s by %s", a.owner.name, a.kind, a.fieldEdit, a.requestForm)
}

// applied reports whether the operator has applied the child before the edit. Otherwise it has
// only created the child, and owns its fields by another entry of managedFields.
func (a attempt) applied() bool {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(a.String())) // A hash returns no error.
	return sum.Sum32()%2 == 1
}

// attempts returns all edits of all children. An edit of the same field of a type, with
// a value that the operator owns or does not own, is listed once, however many objects have
// it.
func attempts(ctx context.Context, all schemas, s *worker) ([]attempt, error) {
	owners, err := readOwners()
	if err != nil {
		return nil, err
	}
	values, err := readSamples("testdata/samples.yaml")
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var found []attempt
	for _, of := range owners {
		object, desired, err := s.bring(ctx, of.manifest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", of.name, err)
		}
		for _, kind := range sortedKeys(desired) {
			live, err := s.read(ctx, kind, object)
			if err != nil {
				return nil, err
			}
			for _, e := range editsOf(all, values, live) {
				owned := ownedAt(all, all.typeOf(live), desired[kind], live, e.at)
				place := fmt.Sprint(kind, " ", e.place, owned)
				if seen[place] {
					continue
				}
				seen[place] = true
				for _, requestForm := range sortedKeys(requestForms) {
					found = append(found, attempt{owner: of, kind: kind, requestForm: requestForm, fieldEdit: e})
				}
			}
		}
	}
	return found, s.leave(ctx)
}

// editsOf returns the edits of a child.
func editsOf(all schemas, values samples, live tree) []*fieldEdit {
	e := &editor{schemas: all, samples: values}
	object := stable(live)
	metadata := object["metadata"].(tree)
	for _, field := range []string{"labels", "annotations", "ownerReferences"} {
		if metadata[field] != nil {
			at := where{of: all.typeOf(live)}.key(all, "metadata").key(all, field)
			e.walk(at, metadata[field])
		}
	}
	e.walk(where{of: all.typeOf(live)}.key(all, "spec"), object["spec"])
	return e.found
}

// ownedAt reports whether the operator desires a value at a path.
func ownedAt(all schemas, t *typeSchema, desired, live any, at path) bool {
	for _, step := range at {
		switch step := step.(type) {
		case string:
			object, _ := desired.(tree)
			inner, _ := live.(tree)
			desired, live, t = object[step], inner[step], all.child(t, step)
		case int:
			list, _ := live.([]any)
			ours, _ := desired.([]any)
			if len(t.ListKeys) > 0 {
				desired, live = itemOf(t.ListKeys, ours, keyOf(t.ListKeys, list[step])), list[step]
			} else if step < len(ours) {
				desired, live = ours[step], list[step]
			}
			t = all.of(t.Items)
		}
	}
	return desired != nil
}
