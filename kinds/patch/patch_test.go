// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package patch_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
)

type port struct {
	Name   string `json:"name,omitempty"`
	Number int32  `json:"number"`
}

type spec struct {
	Replicas  *int32                       `json:"replicas,omitempty"`
	Image     string                       `json:"image,omitempty"`
	Surge     *intstr.IntOrString          `json:"surge,omitempty"`
	Ports     []port                       `json:"ports,omitempty"`
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	Labels    map[string]string            `json:"labels,omitempty"`
	Ratio     float64                      `json:"ratio,omitempty"`
	Paused    bool                         `json:"paused,omitempty"`
}

func TestRecords(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		write func(ops *patch.Ops, s *spec)
		want  string
	}{
		"nothing": {write: func(*patch.Ops, *spec) {}, want: ``},
		"a number": {
			write: func(ops *patch.Ops, s *spec) { patch.Set(ops, "/spec/replicas", &s.Replicas, new(int32(1))) },
			want:  `[{"op":"add","path":"/spec/replicas","value":1}]`,
		},
		"a string, and nothing escaped for HTML": {
			write: func(ops *patch.Ops, s *spec) { patch.Set(ops, "/spec/image", &s.Image, `<a&"b">`) },
			want:  `[{"op":"add","path":"/spec/image","value":"<a&\"b\">"}]`,
		},
		"a type that marshals itself": {
			write: func(ops *patch.Ops, s *spec) { patch.Set(ops, "/spec/surge", &s.Surge, new(intstr.FromString("25%"))) },
			want:  `[{"op":"add","path":"/spec/surge","value":"25%"}]`,
		},
		"an object": {
			write: func(ops *patch.Ops, s *spec) {
				patch.Set(ops, "/spec/resources", &s.Resources, &corev1.ResourceRequirements{
					Limits: corev1.ResourceList{"cpu": resource.MustParse("1")},
				})
			},
			want: `[{"op":"add","path":"/spec/resources","value":{"limits":{"cpu":"1"}}}]`,
		},
		"several, in order": {
			write: func(ops *patch.Ops, s *spec) {
				patch.Set(ops, "/spec/image", &s.Image, "a")
				patch.Unset(ops, "/spec/image", &s.Image)
				patch.Set(ops, patch.At("/spec/ports", 1, "/name"), &s.Ports[1].Name, "http")
				patch.Set(ops, "/spec/paused", &s.Paused, true)
			},
			want: `[{"op":"add","path":"/spec/image","value":"a"},{"op":"remove","path":"/spec/image"},` +
				`{"op":"add","path":"/spec/ports/1/name","value":"http"},{"op":"add","path":"/spec/paused","value":true}]`,
		},
		"a path that JSON must escape": {
			write: func(ops *patch.Ops, _ *spec) {
				name := ""
				patch.Set(ops, patch.Key("/spec/labels", `a"\é/~b`), &name, "x")
			},
			want: `[{"op":"add","path":"/spec/labels/a\"\\é~1~0b","value":"x"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ops patch.Ops
			recorded, silent := spec{Ports: make([]port, 2)}, spec{Ports: make([]port, 2)}
			tc.write(&ops, &recorded)
			tc.write(nil, &silent)
			if diff := cmp.Diff(tc.want, string(ops.JSON())); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(recorded, silent); diff != "" {
				t.Errorf("the object differs when nothing is recorded (-recorded +silent):\n%s", diff)
			}
			if want := strings.Count(tc.want, `"op"`); ops.Len() != want || ops.Err() != nil {
				t.Errorf("Len() = %d, Err() = %v, want %d and none", ops.Len(), ops.Err(), want)
			}
		})
	}
}

func TestNilDiscards(t *testing.T) {
	t.Parallel()
	var ops *patch.Ops
	if ops.JSON() != nil || ops.Len() != 0 || ops.Err() != nil {
		t.Errorf("JSON() = %s, Len() = %d, Err() = %v, want nothing", ops.JSON(), ops.Len(), ops.Err())
	}
}

func TestUnmarshallable(t *testing.T) {
	t.Parallel()
	var ops patch.Ops
	var s spec
	patch.Set(&ops, "/spec/image", &s.Image, "a")
	patch.Set(&ops, "/spec/ratio", &s.Ratio, math.NaN())
	patch.Set(&ops, "/spec/paused", &s.Paused, true)
	want := `[{"op":"add","path":"/spec/image","value":"a"},{"op":"add","path":"/spec/paused","value":true}]`
	if got := string(ops.JSON()); got != want || ops.Len() != 2 {
		t.Errorf("JSON() = %s, Len() = %d, want %s", got, ops.Len(), want)
	}
	if err := ops.Err(); err == nil || !strings.Contains(err.Error(), "/spec/ratio") {
		t.Errorf("Err() = %v, want one that names /spec/ratio", err)
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	deep := func(ops *patch.Ops) {
		var s string
		patch.Set(ops, "/spec/image", &s, "a")
		patch.Set(ops, "/spec/rollout/surge", &s, "b")
		patch.Set(ops, "/spec/rollout/wait", &s, "c")
	}
	for name, tc := range map[string]struct {
		doc   string
		write func(ops *patch.Ops)
		want  string // the document afterwards
		err   string
	}{
		"nothing missing": {
			doc: ` { "spec" : {"rollout":{"surge":"x"}}}`, write: deep,
			want: `{"spec":{"image":"a","rollout":{"surge":"b","wait":"c"}}}`,
		},
		"one missing":  {doc: `{"spec":{}}`, write: deep, want: `{"spec":{"image":"a","rollout":{"surge":"b","wait":"c"}}}`},
		"both missing": {doc: `{}`, write: deep, want: `{"spec":{"image":"a","rollout":{"surge":"b","wait":"c"}}}`},
		"the inner one first": {
			doc: `{"kind":"Box"}`,
			write: func(ops *patch.Ops) {
				var s string
				patch.Set(ops, "/spec/a/b", &s, "1")
				patch.Set(ops, "/spec/c", &s, "2")
				patch.Set(ops, "/spec/a/d", &s, "3")
			},
			want: `{"kind":"Box","spec":{"a":{"b":"1","d":"3"},"c":"2"}}`,
		},
		"below what was set as a whole": {
			doc: `{"spec":{"rollout":null}}`,
			write: func(ops *patch.Ops) {
				var s string
				var whole map[string]string
				patch.Set(ops, "/spec/rollout", &whole, map[string]string{})
				patch.Set(ops, "/spec/rollout/surge", &s, "b")
			},
			want: `{"spec":{"rollout":{"surge":"b"}}}`,
		},
		"a name is not the prefix of another": {
			doc: `{"spec":{}}`,
			write: func(ops *patch.Ops) {
				var s string
				patch.Set(ops, "/spec/roll", &s, "x")
				patch.Set(ops, "/spec/rollout/surge", &s, "b")
			},
			want: `{"spec":{"roll":"x","rollout":{"surge":"b"}}}`,
		},
		"null":         {doc: `{"spec":null}`, write: deep, err: `setting /spec/image: /spec is neither an object nor a list`},
		"null below":   {doc: `{"spec":{"rollout":null}}`, write: deep, err: `setting /spec/rollout/surge: /spec/rollout is neither an object nor a list`},
		"not a holder": {doc: `{"spec":"x"}`, write: deep, err: `/spec is neither`},
		"item": {
			doc:   `{"spec":{"ports":[{},{"name":"a"}]}}`,
			write: func(ops *patch.Ops) { patch.Set(ops, patch.At("/spec/ports", 0, "/name"), new(string), "b") },
			want:  `{"spec":{"ports":[{"name":"b"},{"name":"a"}]}}`,
		},
		"null item": {
			doc:   `{"spec":{"ports":[{},null]}}`,
			write: func(ops *patch.Ops) { patch.Set(ops, patch.At("/spec/ports", 1, "/name"), new(string), "b") },
			err:   `/spec/ports/1 is neither`,
		},
		"item that is not there": {
			doc:   `{"spec":{"ports":[{}]}}`,
			write: func(ops *patch.Ops) { patch.Set(ops, patch.At("/spec/ports", 1, "/name"), new(string), "b") },
			err:   `/spec/ports/1 is not in the list`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ops patch.Ops
			tc.write(&ops)
			err := ops.Fit([]byte(tc.doc))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("Fit: %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatalf("Fit: %v", err)
			}
			equalJSON(t, tc.want, apply(t, tc.doc, ops.JSON()))
		})
	}
}

func TestPointers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ got, want string }{
		{patch.At("/spec/ports", 0, "/name"), "/spec/ports/0/name"},
		{patch.At("/spec/ports", 123, ""), "/spec/ports/123"},
		{patch.At(patch.At("/spec/a", 1, "/b"), 2, "/c"), "/spec/a/1/b/2/c"},
		{patch.Key("/metadata/labels", "example.com/a~b"), "/metadata/labels/example.com~1a~0b"},
		{patch.Key("/metadata/labels", "~1"), "/metadata/labels/~01"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %s, want %s", tc.got, tc.want)
		}
	}
}

func Example() {
	var ops patch.Ops
	var s spec
	patch.Set(&ops, "/spec/replicas", &s.Replicas, new(int32(1)))
	fmt.Println(string(ops.JSON()))
	// Output: [{"op":"add","path":"/spec/replicas","value":1}]
}

func apply(t *testing.T, doc string, ops []byte) []byte {
	t.Helper()
	decoded, err := jsonpatch.DecodePatch(ops)
	if err != nil {
		t.Fatalf("decoding %s: %v", ops, err)
	}
	patched, err := decoded.Apply([]byte(doc))
	if err != nil {
		t.Fatalf("applying %s: %v", ops, err)
	}
	return patched
}

func equalJSON(t *testing.T, want string, got []byte) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(want), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &b); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
