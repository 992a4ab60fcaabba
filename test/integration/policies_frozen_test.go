// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	clikinds "github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/plan"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// podKinds are the kinds whose objects make pods.
var podKinds = []kind{modelBox, app, genericdaemon}

// edits change one field of a spec that has an image. Whether that changes the pod template is computed, so
// a new field needs a row here, and, if it reaches the template, its name in frozen.yaml.
var edits = map[string][2]string{
	"args":                          {`args: [a]`, `args: [b]`},
	"command":                       {`command: [a]`, `command: [b]`},
	"defaultProbes":                 {`ports: [{port: 80}]`, `ports: [{port: 80}], defaultProbes: Disabled`},
	"envFrom":                       {``, `envFrom: [{configMapRef: {name: a}}]`},
	"envs":                          {`envs: [{name: A, value: a}]`, `envs: [{name: A, value: b}]`},
	"image":                         {``, `image: "a:2"`},
	"imagePullPolicy":               {``, `imagePullPolicy: Always`},
	"imagePullSecrets":              {``, `imagePullSecrets: [{name: a}]`},
	"label":                         {`label: a`, `label: b`},
	"livenessProbe":                 {``, `livenessProbe: {exec: {command: [a]}}`},
	"model":                         {``, `model: {uri: "pvc://a/b"}`},
	"modelFileURL":                  {``, `modelFileURL: "pvc://a/b"`},
	"models":                        {``, `models: [{name: a, uri: "pvc://a/b", mountPath: /a}]`},
	"name":                          {``, `name: another`},
	"paused":                        {``, `paused: true`},
	"podTemplate":                   {``, `podTemplate: {spec: {hostNetwork: true}}`},
	"ports":                         {`ports: [{port: 80}]`, `ports: [{port: 81}]`},
	"progressDeadlineSeconds":       {``, `progressDeadlineSeconds: 60`},
	"readinessProbe":                {``, `readinessProbe: {exec: {command: [a]}}`},
	"replicas":                      {`replicas: 1`, `replicas: 2`},
	"resourceType":                  {`resourceType: small`, `resourceType: medium`},
	"resources":                     {``, `resources: {limits: {cpu: "1"}}`},
	"rollingUpdate":                 {``, `rollingUpdate: 2`},
	"schedules":                     {``, `schedules: [{name: a, schedule: "@daily", replicas: 2}]`},
	"restartOnChange":               {`restartOnChange: None, envFrom: [{configMapRef: {name: a}}]`, `restartOnChange: Referenced`},
	"disruption":                    {``, `disruption: {maxUnavailable: 1}`},
	"route":                         {`ports: [{port: 80}]`, `ports: [{port: 80}], route: {hosts: [a.example.com], gateway: {name: a}}`},
	"monitoring":                    {``, `monitoring: {port: 80}`},
	"autoscaling":                   {``, `autoscaling: {maxReplicas: 2}`},
	"podMetadata":                   {``, `podMetadata: {labels: {a: b}}`},
	"deploymentMetadata":            {``, `deploymentMetadata: {labels: {a: b}}`},
	"serviceMetadata":               {`ports: [{port: 80}]`, `ports: [{port: 80}], serviceMetadata: {annotations: {a: b}}`},
	"minReadySeconds":               {``, `minReadySeconds: 10`},
	"revisionHistoryLimit":          {``, `revisionHistoryLimit: 2`},
	"service":                       {`ports: [{port: 80}]`, `ports: [{port: 80}], service: {sessionAffinity: ClientIP}`},
	"scheduling":                    {``, `scheduling: {nodeSelector: {a: b}}`},
	"selector":                      {``, `selector: {a: b}`},
	"serviceType":                   {`ports: [{port: 80}]`, `ports: [{port: 80}], serviceType: LoadBalancer`},
	"sharedMemory":                  {``, `sharedMemory: 1Gi`},
	"startupProbe":                  {``, `startupProbe: {exec: {command: [a]}}`},
	"strategy":                      {``, `strategy: {type: Recreate}`},
	"skipDates":                     {held + `]`, held + `], skipDates: ["2026-12-24"]`},
	"windows":                       {held + `]`, held + `, {schedule: "@weekly", duration: 1h}]`},
	"terminationGracePeriodSeconds": {``, `terminationGracePeriodSeconds: 5`},
}

// held holds rollouts until a window opens; its list is not closed.
const held = `restartOnChange: Referenced, windows: [{schedule: "@daily", duration: 1h}`

// immutable fields are refused by the schema, before the policy.
var immutable = []string{"ModelBox.selector", "App.selector"}

const end = "end of the year"

// setFrozen sets or removes the annotation of a namespace, and waits until the policy of the API server knows it.
func setFrozen(t *testing.T, namespace string, frozen bool) {
	t.Helper()
	value := "null"
	if frozen {
		value = `"` + end + `"`
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, api.AnnotationFrozen, value)
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := env.Client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	probe, err := as("freeze-probe-of-" + namespace)
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := app.in(probe, namespace).Patch(ctx, "freeze-probe", types.MergePatchType, []byte(`{"spec":{"image":"a:2"}}`), metav1.PatchOptions{DryRun: dryRun})
		return (outcomeOf(err) == byFrozen) == frozen, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// newFreezable returns a user of a new namespace, whose freeze setFrozen can wait for.
func newFreezable(t *testing.T, name string, roles ...any) tenant {
	t.Helper()
	c := user(t, name, nil, roles...)
	if err := bind(t.Context(), c.namespace, "freeze-probe-of-"+c.namespace, "edit"); err != nil {
		t.Fatal(err)
	}
	if _, err := app.in(admin(t), c.namespace).Create(t.Context(), app.object("freeze-probe", spec{"image": "a:1"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// templateOf returns the pod template that the operator builds from an object.
func templateOf(t *testing.T, obj *unstructured.Unstructured) any {
	t.Helper()
	k, err := clikinds.Find(obj.GetKind())
	if err != nil {
		t.Fatal(err)
	}
	typed := k.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed); err != nil {
		t.Fatal(err)
	}
	k.Stored(typed)
	children, err := k.Children(typed, models.Fetcher{})
	if err != nil {
		t.Fatal(err)
	}
	plan.KeepConfiguration(obj, children[0], children[0])
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(children[0])
	if err != nil {
		t.Fatal(err)
	}
	template, _, _ := unstructured.NestedMap(content, "spec", "template")
	return template
}

// Each field of each kind: its change is refused exactly if it changes the pod template.
func TestAFreezeRefusesWhatReplacesPods(t *testing.T) {
	t.Parallel()
	c := newFreezable(t, "freeze", "edit", optionalRole)
	stored := map[string]*unstructured.Unstructured{}
	for _, k := range podKinds {
		for field := range specOf(t, k).Properties {
			if edits[field][1] == "" {
				t.Errorf("the schema of %s has the field %s: add an edit of it to this test", k.name, field)
				continue
			}
			_, s := parse(t, k.name+` {image: "a:1", `+edits[field][0]+`}`)
			obj, err := k.in(c, c.namespace).Create(t.Context(), k.object(strings.ToLower(field), s), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			stored[k.name+"."+field] = obj
		}
	}
	setFrozen(t, c.namespace, true)
	used := map[string]bool{}
	for _, k := range podKinds {
		for field := range specOf(t, k).Properties {
			if stored[k.name+"."+field] == nil {
				continue
			}
			used[field] = true
			checkEdit(t, c, k, field, stored[k.name+"."+field])
		}
	}
	for field := range edits {
		if !used[field] {
			t.Errorf("no kind has the field %s", field)
		}
	}
}

func checkEdit(t *testing.T, c tenant, k kind, field string, obj *unstructured.Unstructured) {
	t.Helper()
	_, s := parse(t, k.name+" {"+edits[field][1]+"}")
	edited := obj.DeepCopy()
	maps.Copy(edited.Object["spec"].(map[string]any), s)
	_, err := k.in(c, c.namespace).Update(t.Context(), edited, metav1.UpdateOptions{})
	name, want := k.name+"."+field, allowed
	if apierrors.IsInvalid(err) {
		if !strings.Contains(strings.Join(immutable, " "), name) {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	if !reflect.DeepEqual(templateOf(t, obj), templateOf(t, edited)) {
		want = byFrozen
	}
	got := outcomeOf(err)
	if got != want {
		t.Errorf("%s: %s, want %s: list the field in frozen.yaml exactly if it reaches the pod template (%v)", name, got, want, err)
	}
	if got == byFrozen && !strings.Contains(err.Error(), "is frozen ("+end+"), and a change of spec."+field+" replaces pods; wait until") {
		t.Errorf("%s: the message has no reason, field or way out: %v", name, err)
	}
}

// All else continues during a freeze, and after it everything.
func TestWhatAFreezeAllows(t *testing.T) {
	t.Parallel()
	c := newFreezable(t, "freeze-allows", "edit")
	override := newFreezable(t, "freeze-override", "edit", []rbacv1.PolicyRule{rule(virtualGroup, []string{"override"}, "freezes")})
	use := newFreezable(t, "freeze-use", "edit", delegatedRole)
	for _, tenant := range []tenant{c, override, use} {
		for _, k := range podKinds {
			for _, s := range []spec{{"image": "a:1"}, {"image": "a:1", "paused": true}} {
				obj := k.object(fmt.Sprintf("paused-%t", s["paused"] == true), s)
				if _, err := k.in(tenant, tenant.namespace).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		setFrozen(t, tenant.namespace, true)
	}
	const another, resume = `{"spec":{"image":"a:2"}}`, `{"spec":{"paused":false}}`
	for _, k := range podKinds {
		for _, row := range []struct {
			what string
			of   tenant
			name string
			do   do
			want outcome
		}{
			{"a change", c, "paused-false", patchOf(another), byFrozen},
			{"a change of what is paused", c, "paused-true", patchOf(another), byFrozen},
			{"the end of a pause", c, "paused-true", patchOf(resume), byFrozen},
			{"a change with override", override, "paused-false", patchOf(another), allowed},
			{"the end of a pause with override", override, "paused-true", patchOf(resume), allowed},
			{"a change with use, which is another verb", use, "paused-false", patchOf(another), byFrozen},
			{"an apply that changes nothing", c, "paused-false", apply, allowed},
			{"a label", c, "paused-false", patchOf(`{"metadata":{"labels":{"a":"b"}}}`), allowed},
			{"a pause", c, "paused-false", patchOf(`{"spec":{"paused":true}}`), allowed},
			{"a creation", c, "new", create(nil), allowed},
			{"a deletion", c, "paused-true", remove(nil), allowed},
		} {
			if got := outcomeOf(row.do(t.Context(), k, k.in(row.of, row.of.namespace), k.object(row.name, spec{"image": "a:1"}))); got != row.want {
				t.Errorf("%s of a %s: %s, want %s", row.what, k.name, got, row.want)
			}
		}
		if k.scale {
			if err := patchOf(`{"spec":{"replicas":3}}`, "scale")(t.Context(), k, k.in(c, c.namespace), k.object("paused-false", nil)); err != nil {
				t.Errorf("scaling a %s: %v", k.name, err)
			}
		}
	}
	setFrozen(t, c.namespace, false)
	for _, k := range podKinds {
		if err := patchOf(another)(t.Context(), k, k.in(c, c.namespace), k.object("paused-false", nil)); err != nil {
			t.Errorf("after the freeze: %v", err)
		}
	}
}

// Who may use which size, and who may set scheduling: by create, update and server-side apply. The test
// has no webhook, so what a size brings is written by the request.
func TestSizes(t *testing.T) {
	t.Parallel()
	use := []rbacv1.PolicyRule{named(rule(virtualGroup, []string{"use"}, "sizes"), "gpu-l4")}
	const scheduling = `scheduling: {tolerations: [{key: nvidia.com/gpu, operator: Exists}], runtimeClassName: nvidia, priorityClassName: high}`
	const noSize, noField = "may not use the size gpu-a100 in namespace ", "spec: the fields scheduling may not be set "
	for name, test := range map[string]struct {
		roles []any
		want  map[string]outcome
	}{
		"delegated": {[]any{kindsRole, delegatedRole, use}, map[string]outcome{
			`resourceType: small`: allowed, `resourceType: gpu-l4`: allowed, `resourceType: gpu-l4, ` + scheduling: allowed,
			`resourceType: gpu-a100`: byRequester, `resourceType: gpu-a100, ` + scheduling: byRequester,
			scheduling: byDelegated, `resourceType: large, ` + scheduling: byDelegated, `resourceType: custom, resources: {}, ` + scheduling: byDelegated,
		}},
		"without-sizes": {[]any{kindsRole, delegatedRole}, map[string]outcome{
			`resourceType: medium`: allowed, `resourceType: gpu-l4`: byRequester, `resourceType: gpu-l4, ` + scheduling: byRequester,
		}},
		"edit": {[]any{"edit"}, map[string]outcome{
			`resourceType: gpu-l4`: allowed, `resourceType: gpu-a100, ` + scheduling: allowed, scheduling: allowed,
			`resourceType: custom, resources: {}, ` + scheduling: allowed,
		}},
		"by-name": {[]any{kindsRole, []rbacv1.PolicyRule{rule("apps", []string{"create"}, "deployments")}, use}, map[string]outcome{
			`resourceType: gpu-l4`: allowed, `resourceType: gpu-a100`: byRequester, scheduling: allowed,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := user(t, "sizes-"+name, nil, test.roles...)
			for text, want := range test.want {
				k, s := parse(t, box(text))
				message := map[outcome]string{byRequester: "may not use the size ", byDelegated: noField}[want]
				check(t, c, box(text), want, message)
				of, obj := k.in(c, c.namespace), k.object("stored", s)
				store(t, k.in(admin(t), c.namespace), k.object("stored", spec{"image": "b:1"}), false)
				patched, err := obj.MarshalJSON()
				if err != nil {
					t.Fatal(err)
				}
				_, err = of.Patch(t.Context(), "stored", types.MergePatchType, patched, metav1.PatchOptions{DryRun: dryRun})
				if got := outcomeOf(err); got != want {
					t.Errorf("update to %s: %s, want %s (%v)", text, got, want, err)
				}
				_, err = of.Apply(t.Context(), "stored", obj, metav1.ApplyOptions{FieldManager: "person", Force: true, DryRun: dryRun})
				if got := outcomeOf(err); got != want {
					t.Errorf("apply of %s: %s, want %s (%v)", text, got, want, err)
				}
			}
		})
	}
	c := user(t, "sizes-message", nil, kindsRole, delegatedRole)
	check(t, c, box(`resourceType: gpu-a100`), byRequester, noSize+c.namespace+
		"; ask for the verb use on sizes.rights.modelbox-operator.github.io/gpu-a100, or set another resourceType")
}

// A size that an administrator has chosen does not prevent a user without it from scaling the object.
func TestScalingAnObjectOfAForbiddenSize(t *testing.T) {
	t.Parallel()
	c := user(t, "sizes-scale", nil, kindsRole, delegatedRole)
	store(t, modelBox.in(admin(t), c.namespace), modelBox.object("a", spec{"image": "a:1", "resourceType": "gpu-l4", "resources": map[string]any{}}), false)
	_, err := modelBox.in(c, c.namespace).Patch(t.Context(), "a", types.MergePatchType, []byte(`{"spec":{"replicas":3}}`), metav1.PatchOptions{}, "scale")
	if err != nil {
		t.Error(err)
	}
}
