// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A removal adds a field to an owner's spec and removes it again. Its edit is of the manifest.
type removal struct {
	owner owner
	*fieldEdit
}

func (t removal) String() string { return t.owner.name + " " + t.fieldEdit.String() }

// sides returns the owner without and with the field.
func (t removal) sides(variant int) (without, with tree) {
	edited := t.to(t.owner.manifest, variant)
	if t.what == "remove" {
		return edited, t.owner.manifest
	}
	return t.owner.manifest, edited
}

// tryRemoval tries a removal in the first variant that is accepted.
func (s *worker) tryRemoval(ctx context.Context, all schemas, t removal) (result, error) {
	for i := range t.variants {
		r, err := s.addAndRemove(ctx, all, t, i)
		if !errors.Is(err, errRefused) {
			return r, err
		}
	}
	return result{outcome: "refused"}, nil
}

// addAndRemove compares the children of an owner, after a field was added to its spec and
// after it was removed, with those of owners that were created with and without the field.
func (s *worker) addAndRemove(ctx context.Context, all schemas, t removal, variant int) (result, error) {
	without, with := t.sides(variant)
	_, fresh, err := s.fresh(ctx, with)
	if err != nil {
		return result{}, err
	}
	object, first, err := s.fresh(ctx, without)
	if err != nil || reflect.DeepEqual(fresh, first) {
		return result{outcome: "no effect"}, err
	}
	detail, err := s.changeTo(ctx, all, object, with, fresh)
	if err != nil || len(detail) > 0 {
		return s.different(ctx, object, append([]string{"with it"}, detail...), err)
	}
	detail, err = s.changeTo(ctx, all, object, without, first)
	if err != nil || len(detail) > 0 {
		return s.different(ctx, object, append([]string{"without it again"}, detail...), err)
	}
	return result{outcome: "right"}, nil
}

// different reports whether the owner's status reports a difference.
func (s *worker) different(ctx context.Context, object *unstructured.Unstructured, detail []string, err error) (result, error) {
	if err != nil {
		return result{}, err
	}
	reported, said, err := readyCondition(ctx, object)
	if reported != "" {
		return result{"reported", append(detail, reported)}, err
	}
	return result{"wrong", append(detail, "status: "+said)}, err
}

// fresh creates an owner and returns its children.
func (s *worker) fresh(ctx context.Context, manifest tree) (*unstructured.Unstructured, tree, error) {
	object, _, err := s.bring(ctx, manifest)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) {
		return nil, nil, errRefused
	}
	if err != nil {
		return nil, nil, err
	}
	children, err := s.children(ctx, object, manifest)
	return object, children, err
}

// changeTo changes the owner's spec, reconciles twice, and compares its children.
func (s *worker) changeTo(ctx context.Context, all schemas, object *unstructured.Unstructured, manifest, want tree) ([]string, error) {
	if err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil, err
	}
	object.Object["spec"] = s.own(manifest)["spec"]
	if err := env.Client.Update(ctx, object); err != nil {
		return []string{err.Error()}, nil //nolint:nilerr // A refused update is a difference of the case, not a defect of the test.
	}
	failed := s.reconcile(ctx, newCounter(), object)
	have, err := s.children(ctx, object, manifest)
	if err != nil {
		return nil, err
	}
	var detail []string
	for _, kind := range childKinds[object.GetKind()] {
		detail = append(detail, all.differences(all.typeOf(child(kind, object).Object), kind, want[kind], have[kind])...)
	}
	if len(detail) > 0 {
		return append(detail, fmt.Sprint(failed)), nil
	}
	second := newCounter()
	if err := s.reconcile(ctx, second, object); err != nil || len(second.writes) > 0 {
		return []string{fmt.Sprintf("a second reconcile wrote %v, error %v", second.writes, err)}, nil
	}
	return nil, nil
}

// children returns the children of an owner by kind, without the values that differ between
// owners of one name, and without those that the API server chose.
func (s *worker) children(ctx context.Context, object *unstructured.Unstructured, manifest tree) (tree, error) {
	found := tree{}
	for _, kind := range childKinds[object.GetKind()] {
		live, err := s.read(ctx, kind, object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		live = withoutStamps(stable(live))
		found[kind] = withoutEmpty(altered(live, path{"metadata", "ownerReferences", 0, "uid"}, removed))
		if kind == "Service" {
			found[kind] = withoutChoice(found[kind].(tree), manifest)
		}
	}
	return found, nil
}

// withoutEmpty returns a value without empty objects. A server-side apply that removes the last
// field of an object removes the object, while an object that was created empty stays; both
// have the same effect.
func withoutEmpty(value any) any {
	switch value := value.(type) {
	case tree:
		for key, inner := range value {
			inner = withoutEmpty(inner)
			if object, ok := inner.(tree); ok && len(object) == 0 {
				delete(value, key)
			}
		}
	case []any:
		for _, item := range value {
			withoutEmpty(item)
		}
	}
	return value
}

// withoutChoice returns a Service without the values that the API server chose.
func withoutChoice(service, manifest tree) tree {
	for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
		unstructured.RemoveNestedField(service, "spec", field)
	}
	desired, _, _ := unstructured.NestedSlice(manifest, "spec", "ports")
	for i := range service["spec"].(tree)["ports"].([]any) {
		if i >= len(desired) || desired[i].(tree)["nodePort"] == nil {
			service = altered(service, path{"spec", "ports", i, "nodePort"}, removed).(tree)
		}
	}
	return service
}

var _ = Describe("a field of a spec", Ordered, func() {
	var all schemas
	var found []removal
	BeforeAll(func() {
		stop() // Only this spec may reconcile.
		DeferCleanup(start)
		var err error
		all, err = readSchemas(env.Config, "apis/apps/v1", "api/v1", "apis/model.github.com/v1", "apis/app.huolala.cn/v1", "apis/mydomain.com/v1beta1")
		Expect(err).NotTo(HaveOccurred())
		found, err = removals(all)
		Expect(err).NotTo(HaveOccurred())
	})

	It("is removed from the children completely when it is removed", func(ctx context.Context) {
		inParallel(chosen(found, "testdata/removal-corpus.txt", 60), func(s *worker, t removal) (result, error) { return s.tryRemoval(ctx, all, t) })
	})
})
