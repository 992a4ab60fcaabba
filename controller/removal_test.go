// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A turn is a change of an owner's spec, there and back. Its edit is of the manifest.
type turn struct {
	owner owner
	*fieldEdit
}

func (t turn) String() string { return t.owner.name + " " + t.fieldEdit.String() }

// sides are the owner without and with a field: a removal goes the other way.
func (t turn) sides(variant int) (without, with tree) {
	edited := t.to(t.owner.manifest, variant)
	if t.what == "remove" {
		return edited, t.owner.manifest
	}
	return t.owner.manifest, edited
}

// turnBack tries a turn in the first variant that is accepted.
func (s *stage) turnBack(ctx context.Context, all schemas, t turn) (result, error) {
	for i := range t.variants {
		r, err := s.thereAndBack(ctx, all, t, i)
		if !errors.Is(err, errRefused) {
			return r, err
		}
	}
	return result{outcome: "refused"}, nil
}

// thereAndBack compares the children of an owner whose spec got a field, and lost it
// again, with those of owners that were created so.
func (s *stage) thereAndBack(ctx context.Context, all schemas, t turn, variant int) (result, error) {
	without, with := t.sides(variant)
	_, fresh, err := s.fresh(ctx, with)
	if err != nil {
		return result{}, err
	}
	object, first, err := s.fresh(ctx, without)
	if err != nil || reflect.DeepEqual(fresh, first) {
		return result{outcome: "no effect"}, err
	}
	detail, err := s.turnTo(ctx, all, object, with, fresh)
	if err != nil || len(detail) > 0 {
		return s.different(ctx, object, append([]string{"with it"}, detail...), err)
	}
	detail, err = s.turnTo(ctx, all, object, without, first)
	if err != nil || len(detail) > 0 {
		return s.different(ctx, object, append([]string{"without it again"}, detail...), err)
	}
	return result{outcome: "right"}, nil
}

// different says whether the owner's status reports a difference.
func (s *stage) different(ctx context.Context, object *unstructured.Unstructured, detail []string, err error) (result, error) {
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
func (s *stage) fresh(ctx context.Context, manifest tree) (*unstructured.Unstructured, tree, error) {
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

// turnTo changes the owner's spec, reconciles twice, and compares its children.
func (s *stage) turnTo(ctx context.Context, all schemas, object *unstructured.Unstructured, manifest, want tree) ([]string, error) {
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

// children are the children of an owner by kind, without what differs from one owner to
// the next of its name and without what the API server chose.
func (s *stage) children(ctx context.Context, object *unstructured.Unstructured, manifest tree) (tree, error) {
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

// withoutEmpty is a value without objects that have nothing in them. A server-side apply
// that removes the last field of an object removes the object, while one that is created
// empty stays; both say the same.
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

// withoutChoice is a Service without what the API server chose for it.
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
	var found []turn
	BeforeAll(func() {
		stop() // Only the reconciles of this spec are to act.
		DeferCleanup(start)
		var err error
		all, err = readSchemas(env.Config, "apis/apps/v1", "api/v1", "apis/model.github.com/v1", "apis/app.huolala.cn/v1", "apis/mydomain.com/v1beta1")
		Expect(err).NotTo(HaveOccurred())
		found, err = turns(all)
		Expect(err).NotTo(HaveOccurred())
	})

	It("is tried, whatever it is", func() {
		Expect(without(fieldsOfSpecs(), found, func(turn) bool { return true })).To(BeEmpty())
	})

	It("is removed from the children completely when it is removed", func(ctx context.Context) {
		outcomes := inParallel(chosen(found, "testdata/removal-corpus.txt", 60), func(s *stage, t turn) (result, error) { return s.turnBack(ctx, all, t) })
		if os.Getenv("MODELBOX_EDITS") != "all" {
			return
		}
		By("fields that the API server or the operator refuses, or of which a child knows nothing")
		known := inCorpus("testdata/removal-refused.txt")
		untried := without(fieldsOfSpecs(), found, func(t turn) bool { return outcomes[t.String()] == "right" || outcomes[t.String()] == "reported" })
		Expect(untried).To(ConsistOf(sortedKeys(known)))
	})
})
