// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// result is the result of an attempt.
type result struct {
	// outcome is "refused", "no effect", "right", "reported" or "wrong".
	outcome string
	detail  []string
}

// attemptRun is the run of an attempt.
type attemptRun struct {
	*worker
	schemas
	attempt
	object  *unstructured.Unstructured
	desired tree
	before  tree
}

func (s *worker) try(ctx context.Context, all schemas, a attempt) (result, error) {
	t := &attemptRun{worker: s, schemas: all, attempt: a}
	if err := t.prepare(ctx); err != nil {
		return result{}, fmt.Errorf("preparing: %w", err)
	}
	outcome, err := t.write(ctx)
	if outcome != "" || err != nil {
		return result{outcome: outcome}, err
	}
	edited, err := t.read(ctx, t.kind, t.object)
	if err != nil || reflect.DeepEqual(stable(edited), stable(t.before)) {
		return result{outcome: "no effect"}, err
	}
	return t.check(ctx, edited)
}

func (t *attemptRun) prepare(ctx context.Context) error {
	object, desired, err := t.bring(ctx, t.owner.manifest)
	if err != nil {
		return err
	}
	t.object, t.desired = object, desired[t.kind]
	if t.applied() {
		if err := t.changeOwner(ctx, "first"); err != nil {
			return err
		}
		if err := t.reconcile(ctx, newCounter(), t.object); err != nil {
			return err
		}
	}
	t.before, err = t.read(ctx, t.kind, t.object)
	return err
}

// changeOwner changes an image, and a port of a Service.
func (t *attemptRun) changeOwner(ctx context.Context, word string) error {
	if err := env.Client.Get(ctx, client.ObjectKeyFromObject(t.object), t.object); err != nil {
		return err
	}
	changed := altered(t.object.Object, path{"spec", "image"}, always("registry.example.com/changed:"+word)).(tree)
	if ports, _, _ := unstructured.NestedSlice(changed, "spec", "ports"); len(ports) > 0 {
		changed = altered(changed, path{"spec", "ports", 0, "appProtocol"}, always("example.com/"+word)).(tree)
	}
	t.object = &unstructured.Unstructured{Object: changed}
	return env.Client.Update(ctx, t.object)
}

// write writes the edit, in the first variant that the API server accepts.
func (t *attemptRun) write(ctx context.Context) (string, error) {
	send, variants := requestForms[t.requestForm], t.variants
	if t.what == "remove" && t.requestForm == "apply" {
		send, variants = applyRemoval, t.others
	}
	if len(variants) == 0 {
		return "no such request", nil
	}
	for _, variant := range variants {
		err := send(ctx, t.schemas, env.Client, t.before, altered(t.before, t.at, variant).(tree))
		switch {
		case err == nil:
			return "", nil
		case errors.Is(err, errNoSuchRequest):
			return "no such request", nil
		case !refuses(err):
			return "", fmt.Errorf("writing the edit: %w", err)
		}
	}
	return "refused", nil
}

// refuses reports whether the API server refused to store an object.
func refuses(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) ||
		apierrors.IsInternalError(err) || apierrors.ReasonForError(err) == ""
}

// check reconciles and compares.
func (t *attemptRun) check(ctx context.Context, edited tree) (result, error) {
	want := oracle{t.schemas}.want(t.typeOf(t.before), t.desired, t.before, edited).(tree)
	failed := t.reconcile(ctx, newCounter(), t.object)
	detail, err := t.compare(ctx, want)
	if err != nil {
		return result{}, err
	}
	if len(detail) > 0 {
		return t.wrong(ctx, detail, failed)
	}
	_, said, err := readyCondition(ctx, t.object)
	if err != nil {
		return result{}, err
	}
	second := newCounter()
	if err := t.reconcile(ctx, second, t.object); err != nil || len(second.writes) > 0 {
		return result{"wrong", []string{fmt.Sprintf("a second reconcile wrote %v, error %v; after the first: %s", second.writes, err, said)}}, nil
	}
	if err := t.changeOwner(ctx, "second"); err != nil {
		return result{}, err
	}
	failed = t.reconcile(ctx, newCounter(), t.object)
	detail, err = t.compare(ctx, t.withChange(want))
	if err != nil || len(detail) == 0 {
		return result{outcome: "right"}, err
	}
	return t.wrong(ctx, append([]string{"after a change of the owner"}, detail...), failed)
}

func (t *attemptRun) compare(ctx context.Context, want tree) ([]string, error) {
	have, err := t.read(ctx, t.kind, t.object)
	if err != nil {
		return nil, err
	}
	return t.differences(t.typeOf(have), "", withoutStamps(stable(want)), withoutStamps(stable(have))), nil
}

// withoutStamps returns a child without the annotations of the last write.
func withoutStamps(object tree) tree {
	annotations, _, _ := unstructured.NestedMap(object, "metadata", "annotations")
	maps.DeleteFunc(annotations, func(key string, _ any) bool { return strings.HasPrefix(key, "model.github.com/") })
	unstructured.RemoveNestedField(object, "metadata", "annotations")
	if len(annotations) > 0 {
		_ = unstructured.SetNestedMap(object, annotations, "metadata", "annotations") // It was a map.
	}
	return object
}

// withChange returns the expected child after the change of its owner.
func (t *attemptRun) withChange(want tree) tree {
	if t.kind == "Service" {
		number, _, _ := unstructured.NestedSlice(t.object.Object, "spec", "ports")
		i := slices.IndexFunc(want["spec"].(tree)["ports"].([]any), func(port any) bool { return port.(tree)["port"] == number[0].(tree)["port"] })
		return altered(want, path{"spec", "ports", i, "appProtocol"}, always("example.com/second")).(tree)
	}
	name := t.object.GetName()
	if given, ok := t.object.Object["spec"].(tree)["name"].(string); ok {
		name = given
	}
	containers := path{"spec", "template", "spec", "containers"}
	i := slices.IndexFunc(valueAt(want, containers).([]any), func(c any) bool { return c.(tree)["name"] == name })
	return altered(want, append(containers, i, "image"), always("registry.example.com/changed:second")).(tree)
}

// wrong returns the result for a difference: reported if the owner's status reports it.
func (t *attemptRun) wrong(ctx context.Context, detail []string, failed error) (result, error) {
	reported, said, err := readyCondition(ctx, t.object)
	if err != nil {
		return result{}, err
	}
	if failed != nil {
		detail = append(detail, "reconcile failed: "+failed.Error())
	}
	how := "created before"
	if t.applied() {
		how = "applied before"
	}
	detail = append(detail, how)
	if reported != "" {
		return result{"reported", append(detail, reported)}, nil
	}
	return result{"wrong", append(detail, "status: "+said)}, nil
}
