// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

const install = `---
apiVersion: v1
kind: ServiceAccount
metadata: {name: modelbox-controller, namespace: ops}
---
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: modelbox-controller}
rules:
- {apiGroups: [events.k8s.io], resources: [events], verbs: [create]}
`

func TestRun(t *testing.T) {
	tests := map[string]struct {
		in         string
		namespaces []string
		want, err  string
	}{
		"limited":             {in: install, namespaces: []string{"a", "b"}, want: "kind: Role\nmetadata:\n  name: modelbox-controller-ops\n  namespace: b\n"},
		"no namespaces":       {in: install, err: "there are no namespaces"},
		"an empty name":       {in: install, namespaces: []string{"a", ""}, err: `"" is not the name of a namespace`},
		"not a name":          {in: install, namespaces: []string{"A"}, err: `"A" is not the name of a namespace`},
		"one twice":           {in: install, namespaces: []string{"a", "b", "a"}, err: `"a" occurs twice`},
		"its own namespace":   {in: install, namespaces: []string{"a", "ops"}, err: `the operator runs in namespace "ops"`},
		"no install":          {in: "", namespaces: []string{"a"}, err: "no service account modelbox-controller"},
		"manifests cut short": {in: "a: [", namespaces: []string{"a"}, err: "reading manifests"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(strings.NewReader(test.in), &out, test.namespaces)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || out.Len() > 0 {
					t.Errorf("%v and %d bytes, want an error that contains %q and no output", err, out.Len(), test.err)
				}
				return
			}
			if err != nil || !strings.Contains(out.String(), test.want) {
				t.Errorf("%v, and this lacks %q:\n%s", err, test.want, &out)
			}
		})
	}
}
