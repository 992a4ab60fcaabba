// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru_test

import (
	"encoding/json"
	"maps"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/test/fieldmanagement"
)

// server does with one Eru what the API server does, in its order: field management, and
// admission if the spec changed. Field management is the API server's own code, with the schema
// of the CRD.
type server struct {
	t    testing.TB
	live map[string]any
	// sent is the last object that was to be stored, before admission.
	sent      map[string]any
	admission bool
}

var kind = mtsrev1.SchemeGroupVersion.WithKind("Eru")

// manager is the API server's field management for Erus.
var manager = sync.OnceValue(func() *managedfields.FieldManager { return fieldmanagement.New(kind) })

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// apply is kubectl apply --server-side --force-conflicts with a field manager.
func (s *server) apply(who string, manifest values) []string {
	s.t.Helper()
	applied, err := manager().Apply(&unstructured.Unstructured{Object: s.before()}, &unstructured.Unstructured{Object: object(manifest)}, who, true)
	if err != nil {
		s.t.Fatalf("applying %v: %v", manifest, err)
	}
	return s.admit(applied.(*unstructured.Unstructured).Object)
}

func (s *server) update(next map[string]any, who string) []string {
	s.t.Helper()
	updated, err := manager().Update(&unstructured.Unstructured{Object: s.before()}, &unstructured.Unstructured{Object: clone(next)}, who)
	if err != nil {
		s.t.Fatalf("updating to %v: %v", next, err)
	}
	return s.admit(updated.(*unstructured.Unstructured).Object)
}

// before is what a write changes: the object, or one without a spec.
func (s *server) before() map[string]any {
	if s.live != nil {
		return clone(s.live)
	}
	empty := object(nil)
	delete(empty, "spec")
	return empty
}

// admit is the mutating webhook, called only for a create and for a changed spec. It returns
// the fields that it refuses.
func (s *server) admit(next map[string]any) []string {
	s.t.Helper()
	if next["spec"] == nil {
		next["spec"] = map[string]any{}
	}
	s.sent = next
	if !s.admission || s.live != nil && cmp.Equal(s.live["spec"], next["spec"]) {
		s.live = next
		return nil
	}
	var old *mtsrev1.Eru
	if s.live != nil {
		old = decode(s.t, s.live)
	}
	obj, ops := decode(s.t, next), &patch.Ops{}
	eru.Default(obj, old, ops)
	if errs := eru.Validate(obj); len(errs) > 0 {
		var fields []string
		for _, err := range errs {
			fields = append(fields, err.Field)
		}
		return fields
	}
	s.live = patched(s.t, next, ops)
	return nil
}

func patched(t testing.TB, next map[string]any, ops *patch.Ops) map[string]any {
	t.Helper()
	if ops.Len() == 0 {
		return next
	}
	decoded, err := jsonpatch.DecodePatch(ops.JSON())
	must(err)
	data, err := decoded.Apply(marshal(t, next))
	must(err)
	var out map[string]any
	must(json.Unmarshal(data, &out))
	return out
}

// values are the two names of the stored object.
func (s *server) values() values { return valuesOf(s.live) }

func (s *server) sentValues() values { return valuesOf(s.sent) }

func valuesOf(object map[string]any) values {
	spec, _ := object["spec"].(map[string]any)
	out := values{}
	for _, name := range []string{current, alias} {
		if value, ok := spec[name]; ok {
			out[name] = value
		}
	}
	return out
}

// lastApplied is the manifest of the last client-side apply.
func (s *server) lastApplied() string {
	text, _, err := unstructured.NestedString(s.live, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	must(err)
	return text
}

// object is a manifest. The other fields are set, so that only the names have defaults.
func object(manifest values) map[string]any {
	spec := map[string]any{"schedule": "@daily", "timeZone": "Etc/UTC", "startingDeadlineSeconds": 60, "historyLimit": 1}
	maps.Copy(spec, manifest)
	return clone(map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": map[string]any{"name": "web"}, "spec": spec,
	})
}

func clone(content map[string]any) map[string]any {
	data, err := json.Marshal(content)
	must(err)
	var out map[string]any
	must(json.Unmarshal(data, &out))
	return out
}

func marshal(t testing.TB, content any) []byte {
	t.Helper()
	data, err := json.Marshal(content)
	must(err)
	return data
}

func decode(t testing.TB, content map[string]any) *mtsrev1.Eru {
	t.Helper()
	out := &mtsrev1.Eru{}
	must(json.Unmarshal(marshal(t, content), out))
	return out
}
