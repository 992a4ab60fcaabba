// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox_test

import (
	"bytes"
	"encoding/json"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/test/fieldmanagement"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

// server does with one ModelBox what the API server does, in its order: defaults of
// the schema, field management, admission if the spec changed. Field management is
// the API server's own code, with the schema of the CRD.
type server struct {
	t    testing.TB
	live map[string]any
	// sent is the last object that was to be stored, before admission.
	sent map[string]any
	// older is true while the cluster has earlier sizes, and gone while it has none.
	older, gone bool
	// bare is for one that has neither defaults nor admission.
	bare bool
}

var kind = modelv1.SchemeGroupVersion.WithKind("ModelBox")

// crd is the schema of ModelBox.
var crd = sync.OnceValue(func() map[string]any { return fieldmanagement.Schema(kind) })

// manager is the API server's field management for ModelBox.
var manager = sync.OnceValue(func() *managedfields.FieldManager { return fieldmanagement.New(kind) })

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// manifest is a manifest in a file.
func manifest(spec map[string]any) map[string]any {
	return clone(map[string]any{
		"apiVersion": kind.GroupVersion().String(),
		"kind":       kind.Kind,
		"metadata":   map[string]any{"name": "web"},
		"spec":       spec,
	})
}

// serverSideApply is kubectl apply --server-side.
func (s *server) serverSideApply(spec map[string]any) field.ErrorList {
	s.t.Helper()
	return s.applyAs("person", spec)
}

// applyAs is kubectl apply --server-side --force-conflicts with a field manager.
func (s *server) applyAs(who string, spec map[string]any) field.ErrorList {
	s.t.Helper()
	live := s.live
	if live == nil {
		live = manifest(nil)
		delete(live, "spec")
	}
	applied, err := manager().Apply(object(live), object(manifest(spec)), who, true)
	if err != nil {
		s.t.Fatalf("applying %v: %v", spec, err)
	}
	return s.admit(s.filled(applied.(*unstructured.Unstructured).Object))
}

// clientSideApply is kubectl apply.
func (s *server) clientSideApply(spec map[string]any) field.ErrorList {
	s.t.Helper()
	modified := manifest(spec)
	text, err := json.Marshal(modified)
	must(err)
	note(modified, string(text))
	if s.live == nil {
		return s.update(modified, "kubectl-client-side-apply")
	}
	metadata := s.live["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	original, _ := annotations[corev1.LastAppliedConfigAnnotation].(string)
	change, err := jsonmergepatch.CreateThreeWayJSONMergePatch([]byte(original), marshal(s.t, modified), marshal(s.t, s.live))
	must(err)
	return s.mergePatch(string(change), "kubectl-client-side-apply")
}

func note(object map[string]any, manifest string) {
	object["metadata"].(map[string]any)["annotations"] = map[string]any{corev1.LastAppliedConfigAnnotation: manifest}
}

// mergePatch is kubectl patch --type=merge, and what kubectl edit sends.
func (s *server) mergePatch(change, who string) field.ErrorList {
	s.t.Helper()
	data, err := jsonpatch.MergePatch(marshal(s.t, s.live), []byte(change))
	must(err)
	var next map[string]any
	must(unmarshal(data, &next))
	return s.update(next, who)
}

func (s *server) update(next map[string]any, who string) field.ErrorList {
	s.t.Helper()
	next = s.filled(next)
	live := s.live
	if live == nil {
		live = manifest(nil)
		delete(live, "spec")
	}
	updated, err := manager().Update(object(live), object(next), who)
	if err != nil {
		s.t.Fatalf("updating to %v: %v", next, err)
	}
	return s.admit(updated.(*unstructured.Unstructured).Object)
}

// filled is an object with the defaults of the schema.
func (s *server) filled(next map[string]any) map[string]any {
	if !s.bare {
		fill(next, crd())
	}
	return next
}

// admit is the webhook, called only for a create and for a changed spec.
func (s *server) admit(next map[string]any) field.ErrorList {
	s.t.Helper()
	s.sent = next
	if s.bare {
		s.live = next
		return nil
	}
	var old *modelv1.ModelBox
	if s.live != nil {
		if cmp.Equal(tree(s.t, s.live["spec"]), tree(s.t, next["spec"])) {
			s.live = next
			return nil
		}
		old = decode(s.t, marshal(s.t, s.live))
	}
	data := marshal(s.t, next)
	check(s.t, data, old)
	box, kind := decode(s.t, data), modelbox.KindWithSizes(s.sizes())
	codec := kind.Codec(box, old)
	before := codec.Spec(box)
	kind.SetDefaults(box, old)
	errs := kind.Refuse(box, old)
	if errs = append(errs, rules.Others(modelbox.Validate(box), errs)...); len(errs) > 0 {
		return errs
	}
	if ops, err := kinds.Diff(data, before, codec.Spec(box)); err == nil {
		decoded, err := jsonpatch.DecodePatch(marshal(s.t, ops))
		must(err)
		data, err = decoded.Apply(data)
		must(err)
	}
	s.live = nil
	must(unmarshal(data, &s.live))
	return nil
}

// box is the object as it is stored.
func (s *server) box() *modelv1.ModelBox {
	if s.live == nil {
		return &modelv1.ModelBox{}
	}
	return decode(s.t, marshal(s.t, s.live))
}

// state is all that a write could change, but for times.
func (s *server) state() any {
	box := s.box()
	for i := range box.ManagedFields {
		box.ManagedFields[i].Time = &metav1.Time{}
	}
	return tree(s.t, box)
}

func object(content map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: clone(content)}
}

func clone(content map[string]any) map[string]any {
	data, err := json.Marshal(content)
	must(err)
	var out map[string]any
	must(unmarshal(data, &out))
	return out
}

// fill is the defaulting of the schema.
func fill(value any, schema map[string]any) {
	switch value := value.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for name, property := range properties {
			property := property.(map[string]any)
			if preset, ok := property["default"]; ok && value[name] == nil {
				value[name] = preset
			}
			fill(value[name], property)
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, item := range value {
			fill(item, items)
		}
	}
}

// sizes are those of the cluster.
func (s *server) sizes() modelbox.Sizes {
	gpu := `{resources: {limits: {cpu: 4, memory: 8Gi, example.com/gpu: 1}, requests: {cpu: 4, memory: 8Gi, example.com/gpu: 1}}, sharedMemory: 1Gi,
scheduling: {nodeSelector: {pool: a}, tolerations: [{key: gpu, operator: Exists}], runtimeClassName: nvidia}, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}`
	if s.older {
		gpu = `{resources: {limits: {cpu: 2}, requests: {cpu: 1}}, scheduling: {priorityClassName: a, nodeSelector: {pool: b}}}`
	}
	out := modelbox.Sizes{}
	if s.gone {
		return out
	}
	for name, text := range map[modelv1.ResourceType]string{
		"gpu": gpu, "cpu": `{resources: {requests: {cpu: 500m}}}`, "none": `{}`, "llm": s.llm(),
	} {
		out[name] = &modelv1.ModelBoxSpec{}
		must(yaml.UnmarshalStrict([]byte(text), out[name]))
	}
	return out
}

// llm is the size with a server, as a spec.
func (s *server) llm() string {
	if s.older {
		return `{image: llm:1, args: [--old], ports: [{port: 9000, targetPort: 9000, protocol: TCP}], resources: {requests: {cpu: 1}}}`
	}
	return `{image: llm:2, args: ["--port=9000"], envs: [{name: MODE, value: llm}], ports: [{port: 9000, targetPort: 9000, protocol: TCP}],
readinessProbe: {httpGet: {path: /health, port: 9000}}, startupProbe: {httpGet: {path: /health, port: 9000}, periodSeconds: 2, failureThreshold: 900},
terminationGracePeriodSeconds: 120, resources: {requests: {cpu: 1}}}`
}

// box reads a ModelBox called web from the YAML of its spec.
func box(t testing.TB, spec string) *modelv1.ModelBox {
	t.Helper()
	out := &modelv1.ModelBox{}
	out.Name = "web"
	ruletest.Read(t, spec, &out.Spec)
	return out
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// diff compares what two values look like in JSON.
func diff(t testing.TB, want, got any) string {
	t.Helper()
	if bytes.Equal(marshal(t, want), marshal(t, got)) {
		return ""
	}
	return cmp.Diff(tree(t, want), tree(t, got))
}

// tree is what v looks like in JSON.
func tree(t testing.TB, v any) any {
	t.Helper()
	var out any
	if err := json.Unmarshal(marshal(t, v), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// unmarshal decodes as the API server does, where unknown fields are pruned.
func unmarshal(data []byte, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}
