// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"strings"
	"testing"
)

func repeated(count int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", count), ",") + "]"
}

func numbered(count int, item string) string {
	items := make([]string, count)
	for i := range items {
		items[i] = fmt.Sprintf(item, i)
	}
	return "[" + strings.Join(items, ",") + "]"
}

// longest is a URI of the greatest length, of which the API server could make many parts.
func longest(uri string) string { return uri + strings.Repeat("/", 2048-len(uri)) }

// The API server stops an expression that costs too much with an error that helps no user.
// So what is within the bounds must not cost so much, and what is larger is refused for
// being larger. A user with the rights is not affected.
func TestLargeTemplates(t *testing.T) {
	t.Parallel()
	c := user(t, "large", lists, kindsRole, delegatedRole)
	editor := user(t, "large-edit", nil, "edit")
	const tooLarge = "spec.podTemplate may have no null, at most 16 containers"
	env := `{name: A, valueFrom: {secretKeyRef: {name: db, key: a}}}`
	full := `{name: c, image: "a:1", env: ` + repeated(128, env) + `, envFrom: ` + repeated(64, `{secretRef: {name: db}}`) +
		`, ports: ` + numbered(64, `{containerPort: %d}`) + `, readinessProbe: {httpGet: {port: 80}}, securityContext: {runAsUser: 1, capabilities: {drop: [ALL]}}}`
	var fields, containers strings.Builder
	for i := range 8000 {
		fmt.Fprintf(&fields, "f%d: 1, ", i)
	}
	for i := range 64 {
		fmt.Fprintf(&containers, "f%d: 1, ", i)
	}
	for name, test := range map[string]struct{ text, want string }{
		"all that is allowed": {pod(`{containers: ` + repeated(16, full) + `, initContainers: ` + repeated(16, full) +
			`, imagePullSecrets: ` + repeated(64, `{name: db}`) +
			`, volumes: ` + repeated(64, `{name: v, projected: {sources: `+repeated(32, `{secret: {name: db}}`)+`}}`) + `}`), ""},
		"all that is allowed, refused": {pod(`{containers: ` + repeated(16, strings.ReplaceAll(full, "db", "root")) + `, volumes: ` +
			repeated(64, `{name: v, projected: {sources: `+repeated(32, `{secret: {name: root}}`)+`}}`) + `}`), "(not so: spec.podTemplate, container c"},
		"containers":              {pod(`{containers: ` + repeated(17, `{name: a}`) + `}`), tooLarge},
		"empty containers":        {pod(`{containers: ` + repeated(40000, `{}`) + `}`), tooLarge},
		"init containers":         {pod(`{initContainers: ` + repeated(20000, `{}`) + `}`), tooLarge},
		"volumes":                 {pod(`{volumes: ` + repeated(20000, `{}`) + `}`), tooLarge},
		"env":                     {box(`env: ` + repeated(10000, `{}`)), tooLarge},
		"envFrom":                 {box(`envFrom: ` + repeated(10000, `{}`)), tooLarge},
		"ports":                   {box(`ports: ` + repeated(10000, `{}`)), tooLarge},
		"pull secrets":            {pod(`{imagePullSecrets: ` + repeated(10000, `{}`) + `}`), tooLarge},
		"projections":             {pod(`{volumes: [{name: v, projected: {sources: ` + repeated(10000, `{}`) + `}}]}`), tooLarge},
		"fields of the pod":       {pod(`{` + fields.String() + `}`), tooLarge},
		"fields of podTemplate":   {`{image: "a:1", podTemplate: {` + fields.String() + `}}`, tooLarge},
		"fields of a container":   {box(fields.String()), tooLarge},
		"fields of a context":     {box(`securityContext: {` + fields.String() + `}`), tooLarge},
		"fields of 16 containers": {pod(`{containers: ` + repeated(16, `{`+containers.String()+`}`) + `}`), "a field of a container may not be set"},
		"capabilities":            {box(`securityContext: {capabilities: {add: ` + repeated(20000, `A`) + `}}`), "the securityContext of container a"},
		"a source with fields":    {box(`env: [{name: A, valueFrom: {` + fields.String() + `}}]`), "valueFrom may only have"},
		"tolerations":             {pod(`{tolerations: ` + repeated(10000, `{}`) + `}`), "the fields tolerations"},
		"a model, and all that is allowed": {`{image: "a:1", model: {uri: "` + longest("pvc://models") + `", credentials: {name: db}, claim: models}, modelFileURL: "` +
			longest("pvc://models") + `", podTemplate: {spec: {containers: ` + repeated(16, full) + `, volumes: ` + repeated(64, `{name: v, emptyDir: {}}`) + `}}}`, ""},
		"a long URI": {alias(longest("pvc://another")), notListedAlias},
		"1,024 typed envs": {`{image: "a:1", envs: ` + numbered(1024, `{name: A%d, valueFrom: {secretKeyRef: {name: db, key: a}}}`) + `, envFrom: ` +
			repeated(64, `{secretRef: {name: db}}`) + `}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, test.text)
			got, err := tried(t, c, modelBox, "a", s)
			switch {
			case test.want == "" && got != allowed:
				t.Errorf("%s: %.500v", got, err)
			case test.want != "" && (got != byDelegated || !strings.Contains(err.Error(), test.want)):
				t.Errorf("%s, want an error with %q: %.500v", got, test.want, err)
			}
			if got, err := tried(t, editor, modelBox, "a", s); got != allowed {
				t.Errorf("with edit: %s: %.500v", got, err)
			}
		})
	}
}

// The annotations of a Namespace may be long, too.
func TestLongLists(t *testing.T) {
	t.Parallel()
	c := user(t, "long", map[string]string{virtualGroup + "/secrets": strings.Repeat("secret-of-the-team,", 1000) + "db"}, kindsRole, delegatedRole)
	for text, want := range map[string]outcome{
		`{image: "a:1", envFrom: [{secretRef: {name: db}}]}`:   allowed,
		`{image: "a:1", envFrom: [{secretRef: {name: root}}]}`: byDelegated,
	} {
		if got, err := tried(t, c, modelBox, "a", parse(t, text)); got != want {
			t.Errorf("%s: %s, want %s (%.500v)", text, got, want, err)
		}
	}
}
