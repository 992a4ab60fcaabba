// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ports_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

func TestDefaultPorts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ before, ports, want, ops string }{
		"alone": {
			ports: `[{port: 80}]`,
			want:  `[{port: 80, targetPort: 80, protocol: TCP}]`,
			ops:   `[{"op":"add","path":"/spec/ports/0/protocol","value":"TCP"},{"op":"add","path":"/spec/ports/0/targetPort","value":80}]`,
		},
		"alone, with a name that is set": {
			ports: `[{port: 80, name: tcp-80, targetPort: 80, protocol: TCP}]`,
			want:  `[{port: 80, name: tcp-80, targetPort: 80, protocol: TCP}]`,
		},
		"several": {
			ports: `[{port: 80, targetPort: http}, {port: 80, protocol: UDP, name: b}]`,
			want:  `[{port: 80, name: tcp-80, targetPort: http, protocol: TCP}, {port: 80, name: b, targetPort: 80, protocol: UDP}]`,
			ops: `[{"op":"add","path":"/spec/ports/0/protocol","value":"TCP"},{"op":"add","path":"/spec/ports/0/name","value":"tcp-80"},` +
				`{"op":"add","path":"/spec/ports/1/targetPort","value":80}]`,
		},
		"left alone": {
			before: `[{port: 80, name: tcp-80, targetPort: 80, protocol: TCP}, {port: 81, name: b, targetPort: 81, protocol: TCP}]`,
			ports:  `[{port: 80, name: tcp-80, targetPort: 80, protocol: TCP}]`,
			want:   `[{port: 80, targetPort: 80, protocol: TCP}]`,
			ops:    `[{"op":"remove","path":"/spec/ports/0/name"}]`,
		},
		"one more": {
			before: `[{port: 80, targetPort: 80, protocol: TCP}]`,
			ports:  `[{port: 81}, {port: 80, targetPort: 80, protocol: TCP}]`,
			want:   `[{port: 81, name: tcp-81, targetPort: 81, protocol: TCP}, {port: 80, name: tcp-80, targetPort: 80, protocol: TCP}]`,
			ops: `[{"op":"add","path":"/spec/ports/0/protocol","value":"TCP"},{"op":"add","path":"/spec/ports/0/targetPort","value":81},` +
				`{"op":"add","path":"/spec/ports/0/name","value":"tcp-81"},{"op":"add","path":"/spec/ports/1/name","value":"tcp-80"}]`,
		},
		"another number in its place": {
			before: `[{port: 80, name: tcp-80, targetPort: 80, protocol: TCP}, {port: 81, name: b, targetPort: 81, protocol: TCP}]`,
			ports:  `[{port: 90, name: tcp-80, targetPort: 80, protocol: TCP}, {port: 81, name: b, targetPort: 81, protocol: TCP}]`,
			want:   `[{port: 90, name: tcp-80, targetPort: 80, protocol: TCP}, {port: 81, name: b, targetPort: 81, protocol: TCP}]`,
		},
		"in another order": {
			before: `[{port: 80, name: tcp-80, targetPort: 80, protocol: TCP}, {port: 81, name: tcp-81, targetPort: 81, protocol: TCP}]`,
			ports:  `[{port: 81, name: tcp-81, targetPort: 81, protocol: TCP}, {port: 80, name: tcp-80, targetPort: 80, protocol: TCP}]`,
			want:   `[{port: 81, name: tcp-81, targetPort: 81, protocol: TCP}, {port: 80, name: tcp-80, targetPort: 80, protocol: TCP}]`,
		},
		"stored without defaults": {
			before: `[{port: 80}, {port: 81}]`,
			ports:  `[{port: 90, name: tcp-80, targetPort: 80}]`,
			want:   `[{port: 90, name: tcp-80, targetPort: 80, protocol: TCP}]`,
			ops:    `[{"op":"add","path":"/spec/ports/0/protocol","value":"TCP"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var before, list, want []modelv1.Port
			if tc.before != "" {
				ruletest.Read(t, tc.before, &before)
			}
			ruletest.Read(t, tc.ports, &list)
			ruletest.Read(t, tc.want, &want)
			owners, ops := fieldownership.Of(&metav1.ObjectMeta{}), &patch.Ops{}
			ports.Default(list, before, &owners, ops)
			if diff := cmp.Diff(want, list); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.ops, string(ops.JSON())); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultProbePort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`:                         "",
		`[{port: 1}]`:                "1",
		`[{port: 1, targetPort: 2}]`: "2",
		`[{port: 1, protocol: UDP}]`: "",
		`[{port: 1, targetPort: a}]`: "",
		`[{port: 1, targetPort: a}, {port: 2, name: a}]`:                        "a",
		`[{port: 1, targetPort: a}, {port: 2, name: a, protocol: UDP}]`:         "",
		`[{port: 1, protocol: UDP}, {port: 1, targetPort: a}, {port: 3}]`:       "3",
		`[{port: 9, protocol: SCTP}, {port: 8, protocol: TCP}, {port: 3}]`:      "8",
		`[{port: 1, targetPort: b}, {port: 2, name: a}, {port: 2, name: bbb} ]`: "2",
	} {
		var list []modelv1.Port
		ruletest.Read(t, text, &list)
		port, ok := ports.DefaultProbePort(list)
		if got := port.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s %t, want %s", text, got, ok, want)
		}
	}
}
