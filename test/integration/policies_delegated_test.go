// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// Each pod with which Kubernetes tests the restricted Pod Security Standard: one that is
// forbidden for what it sets, and not only for what it does not set, is refused.
func TestDelegatedUsersAreRestricted(t *testing.T) {
	t.Parallel()
	c := readTable(t).user(t, "honest")
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	refused := 0
	for _, p := range restrictedFixtures(t) {
		complete(&p.Spec)
		template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: p.Annotations}, Spec: p.Spec,
		})
		if err != nil {
			t.Fatal(err)
		}
		err = modelBox.try(t, c, "a", spec{"image": "a:1", "podTemplate": template})
		got := outcomeOf(err)
		if permitted := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &p.ObjectMeta, &p.Spec)).Allowed; got != byDelegated && (got != allowed || !permitted) {
			t.Errorf("%s: %s, and the standard permits it: %t (%v)", p.Name, got, permitted, err)
		}
		if got == byDelegated {
			refused++
		}
	}
	if refused < 40 {
		t.Errorf("only %d pods were refused", refused)
	}
}

// restrictedFixtures returns the pods that Kubernetes' own tests of the standard forbid.
func restrictedFixtures(t *testing.T) (out []*corev1.Pod) {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/pod-security-admission").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "test", "testdata", "restricted", "v1.37", "fail", "*.yaml"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d pods were found (%v)", len(files), err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		p := &corev1.Pod{}
		if err := yaml.UnmarshalStrict(data, p); err != nil {
			t.Fatal(err)
		}
		p.Name = filepath.Base(name)
		out = append(out, p)
	}
	return out
}

// complete sets what the restricted standard requires, where a pod does not set it.
func complete(p *corev1.PodSpec) {
	pod := cmp.Or(p.SecurityContext, &corev1.PodSecurityContext{})
	p.SecurityContext = pod
	pod.RunAsNonRoot = cmp.Or(pod.RunAsNonRoot, new(true))
	pod.SeccompProfile = cmp.Or(pod.SeccompProfile, &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault})
	for _, containers := range [][]corev1.Container{p.Containers, p.InitContainers} {
		for i := range containers {
			c := cmp.Or(containers[i].SecurityContext, &corev1.SecurityContext{})
			containers[i].SecurityContext = c
			c.AllowPrivilegeEscalation = cmp.Or(c.AllowPrivilegeEscalation, new(false))
			c.Capabilities = cmp.Or(c.Capabilities, &corev1.Capabilities{})
			c.Capabilities.Drop = append(c.Capabilities.Drop, "ALL")
		}
	}
}

// Objects of the table, with lists that are too long to be written there.
func pod(text string) string       { return "pod " + text }
func container(text string) string { return "container " + text }
func box(text string) string       { return "box " + text }
func alias(uri string) string      { return "alias " + uri }

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
// being larger. A user with the permissions is not affected.
func TestLargeTemplates(t *testing.T) {
	t.Parallel()
	tb := readTable(t)
	c, editor := tb.user(t, "honest"), tb.user(t, "edit")
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
		"env":                     {container(`env: ` + repeated(10000, `{}`)), tooLarge},
		"envFrom":                 {container(`envFrom: ` + repeated(10000, `{}`)), tooLarge},
		"ports":                   {container(`ports: ` + repeated(10000, `{}`)), tooLarge},
		"pull secrets":            {pod(`{imagePullSecrets: ` + repeated(10000, `{}`) + `}`), tooLarge},
		"projections":             {pod(`{volumes: [{name: v, projected: {sources: ` + repeated(10000, `{}`) + `}}]}`), tooLarge},
		"fields of the pod":       {pod(`{` + fields.String() + `}`), tooLarge},
		"fields of podTemplate":   {box(`podTemplate: {` + fields.String() + `}`), tooLarge},
		"fields of a container":   {container(fields.String()), tooLarge},
		"fields of a context":     {container(`securityContext: {` + fields.String() + `}`), tooLarge},
		"fields of 16 containers": {pod(`{containers: ` + repeated(16, `{`+containers.String()+`}`) + `}`), "a field of a container may not be set"},
		"capabilities":            {container(`securityContext: {capabilities: {add: ` + repeated(20000, `A`) + `}}`), "the securityContext of container a"},
		"a source with fields":    {container(`env: [{name: A, valueFrom: {` + fields.String() + `}}]`), "valueFrom may only have"},
		"tolerations":             {pod(`{tolerations: ` + repeated(10000, `{}`) + `}`), "the fields tolerations"},
		"a model, and all that is allowed": {`{image: "a:1", model: {uri: "` + longest("pvc://models") + `", credentials: {name: db}, claim: models}, modelFileURL: "` +
			longest("pvc://models") + `", podTemplate: {spec: {containers: ` + repeated(16, full) + `, volumes: ` + repeated(64, `{name: v, emptyDir: {}}`) + `}}}`, ""},
		"a long URI": {alias(longest("pvc://another")), "(not so: spec.modelFileURL)"},
		"eight models": {box(`models: ` + numbered(8, `{name: m%d, mountPath: "/m%[1]d", uri: "`+longest("pvc://models")+`", credentials: {name: db}, claim: models, include: `+
			repeated(16, strings.Repeat("a", 128))+`}`)), ""},
		"1,024 typed envs": {`{image: "a:1", envs: ` + numbered(1024, `{name: A%d, valueFrom: {secretKeyRef: {name: db, key: a}}}`) + `, envFrom: ` +
			repeated(64, `{secretRef: {name: db}}`) + `}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := byDelegated
			if test.want == "" {
				want = allowed
			}
			tb.check(t, c, test.text, want, test.want)
			tb.check(t, editor, test.text, allowed, "")
		})
	}
}

// The annotations of a Namespace may be long, too.
func TestLongLists(t *testing.T) {
	t.Parallel()
	tb := readTable(t)
	tb.Users["honest"] = account{Roles: tb.Users["honest"].Roles, Annotations: map[string]string{"secrets": strings.Repeat("secret-of-the-team,", 1000) + "db"}}
	c := tb.user(t, "honest")
	for text, want := range map[string]outcome{
		`{image: "a:1", envFrom: [{secretRef: {name: db}}]}`:   allowed,
		`{image: "a:1", envFrom: [{secretRef: {name: root}}]}`: byDelegated,
	} {
		tb.check(t, c, text, want, "")
	}
}
