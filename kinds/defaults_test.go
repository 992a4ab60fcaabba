// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"cmp"
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// note is an object whose fields have the default "new".
type note struct {
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              spec `json:"spec,omitzero"`
}

type spec struct {
	A     inner  `json:"a,omitzero"`
	Empty *inner `json:"empty,omitempty"`
	Ports []port `json:"ports,omitempty"`
	Rest  string `json:"rest,omitempty"`
}

type inner struct {
	B string `json:"b,omitempty"`
	C string `json:"c,omitempty"`
}

type port struct {
	Port     int    `json:"port,omitempty"`
	Protocol string `json:"protocol,omitempty"`
	Name     string `json:"name,omitempty"`
}

var noteKind = &kinds.Kind[note]{
	Default: func(n *note) {
		n.Spec.A.B = cmp.Or(n.Spec.A.B, "new")
		for i := range n.Spec.Ports {
			n.Spec.Ports[i].Name = cmp.Or(n.Spec.Ports[i].Name, "new")
		}
	},
	Codec: func(_, _ *note) kinds.Codec[note] {
		return func(to, from *note) { to.ObjectMeta, to.Spec.Rest = from.ObjectMeta, from.Spec.Rest }
	},
	Update: &kinds.Update[note]{Derived: func(_, _ *note) kinds.Fields {
		return kinds.NewFields("a.b", "empty.b", "ports.*.name")
	}},
}

// A value follows its source unless a client has set it, as managedFields or the last applied manifest
// show.
func TestWhatClientsHaveSet(t *testing.T) {
	t.Parallel()
	const tcp80 = `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":`
	for name, tc := range map[string]struct {
		fields, manifest  string
		value, empty, key bool // Whether it is set.
	}{
		"no field":                          {fields: `{"f:spec":{}}`},
		"the field":                         {fields: `{"f:spec":{"f:a":{"f:b":{}}}}`, value: true},
		"what it is in, empty":              {fields: `{"f:spec":{"f:a":{}}}`},
		"an entry that is broken":           {fields: `{"f:spec":`, value: true, empty: true, key: true},
		"the empty object":                  {fields: `{"f:spec":{"f:empty":{}}}`, empty: true},
		"a name":                            {fields: tcp80 + `{".":{},"f:name":{},"f:port":{}}}}}`, key: true},
		"another field of the port":         {fields: tcp80 + `{".":{},"f:port":{}}}}}`},
		"the port, with nothing in it":      {fields: tcp80 + `{}}}}`},
		"the name of another protocol":      {fields: `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"UDP\"}":{"f:name":{}}}}}`},
		"the manifest":                      {manifest: `{"spec":{"a":{"b":"x"}}}`, value: true},
		"another value in the manifest":     {manifest: `{"spec":{"a":{"b":"y"}}}`},
		"a number in the manifest":          {manifest: `{"spec":{"a":{"b":1}}}`},
		"an empty object in the manifest":   {manifest: `{"spec":{"empty":{ }}}`, empty: true},
		"a null in the manifest":            {manifest: `{"spec":{"a":{"b":null}}}`},
		"a manifest of something":           {manifest: `{"spec":{"a":5}}`},
		"a manifest that is broken":         {manifest: `{"spec":{"a":{"b":"x"`},
		"a manifest that is a list":         {manifest: `[]`},
		"a name in the manifest":            {manifest: `{"spec":{"ports":[{"port":81},{"port":80,"name":"x"}]}}`, key: true},
		"another name in the manifest":      {manifest: `{"spec":{"ports":[{"port":80,"name":"y"}]}}`},
		"a protocol in the manifest":        {manifest: `{"spec":{"ports":[{"port":80,"protocol":"TCP","name":"x"}]}}`, key: true},
		"another protocol in the manifest":  {manifest: `{"spec":{"ports":[{"port":80,"protocol":"UDP","name":"x"}]}}`},
		"a port of the manifest":            {manifest: `{"spec":{"ports":[{"port":80}]}}`},
		"nonsense for a port":               {manifest: `{"spec":{"ports":[1,{"port":"80","name":"y"}]}}`},
		"nonsense for ports, in a manifest": {manifest: `{"spec":{"ports":{"port":80}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := &note{Spec: spec{A: inner{B: "x"}, Empty: &inner{}, Ports: []port{{Port: 80, Name: "x"}}, Rest: "r"}}
			stored.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(cmp.Or(tc.fields, "{}"))}}
			stored.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: tc.manifest}
			sent, was := *stored, *stored
			noteKind.SetDefaults(&sent, stored)
			want := spec{A: inner{B: "new"}, Ports: []port{{Port: 80, Name: "new"}}, Rest: "r"}
			if tc.value {
				want.A.B = "x"
			}
			if tc.empty {
				want.Empty = &inner{}
			}
			if tc.key {
				want.Ports[0].Name = "x"
			}
			if diff := gocmp.Diff(want, sent.Spec); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := gocmp.Diff(&was, stored); diff != "" {
				t.Errorf("the stored object (-before +after):\n%s", diff)
			}
		})
	}
}

// What differs becomes operations that can be applied to what was sent, and none is about another
// value.
func TestDiff(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ sent, before, after, want string }{
		"nothing":                {`{"spec":{"a":1}}`, `{"a":1}`, `{"a":1}`, `[]`},
		"another notation":       {`{"spec":{"cpu":1,"x":0}}`, `{"cpu":"1"}`, `{"cpu":"1","n":2}`, `[{"op":"add","path":"/spec/n","value":2}]`},
		"a value instead of one": {`{"spec":{"a":1}}`, `{"a":1}`, `{"a":2}`, `[{"op":"add","path":"/spec/a","value":2}]`},
		"a value that goes":      {`{"spec":{"a":1}}`, `{"a":1}`, `{}`, `[{"op":"remove","path":"/spec/a"}]`},
		"a value instead of null": {
			`{"spec":{"o":null}}`, `{}`, `{"o":{"a":1}}`, `[{"op":"add","path":"/spec/o","value":{"a":1}}]`,
		},
		"objects that were not sent": {
			`{}`, `{"o":{}}`, `{"a":1,"o":{"b":2}}`,
			`[{"op":"add","path":"/spec","value":{}},{"op":"add","path":"/spec/a","value":1},{"op":"add","path":"/spec/o","value":{}},{"op":"add","path":"/spec/o/b","value":2}]`,
		},
		"a field of an item": {
			`{"spec":{"l":[{"a":1},{}]}}`, `{"l":[{"a":1},{}]}`, `{"l":[{"a":1},{"b/~":2}]}`,
			`[{"op":"add","path":"/spec/l/1/b~1~0","value":2}]`,
		},
		"another number of items": {`{"spec":{"l":[1]}}`, `{"l":[1]}`, `{"l":[1,2]}`, `[{"op":"add","path":"/spec/l","value":[1,2]}]`},
		"other scalars":           {`{"spec":{"l":[1,2]}}`, `{"l":[1,2]}`, `{"l":[2,1]}`, `[{"op":"add","path":"/spec/l","value":[2,1]}]`},
		"null for an object":      {`{"spec":{"o":null}}`, `{"o":{}}`, `{"o":{"a":1}}`, ``},
		"null for an item":        {`{"spec":{"l":[null]}}`, `{"l":[{}]}`, `{"l":[{"a":1}]}`, ``},
		"null for the spec":       {`{"spec":null}`, `{}`, `{"a":1}`, ``},
		"text for the spec":       {`{"spec":"x"}`, `{}`, `{"a":1}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ops, err := kinds.Diff([]byte(tc.sent), decode(t, tc.before), decode(t, tc.after))
			if err != nil || tc.want == "" {
				if tc.want != "" || err == nil {
					t.Fatalf("%v, %v", ops, err)
				}
				return
			}
			text, err := json.Marshal(ops)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(text); got != tc.want && len(ops) > 0 {
				t.Errorf("%s, want %s", got, tc.want)
			}
			patch, err := jsonpatch.DecodePatch(text)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := patch.Apply([]byte(tc.sent)); err != nil {
				t.Error(err)
			}
		})
	}
}

func decode(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
