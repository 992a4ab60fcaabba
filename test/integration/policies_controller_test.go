// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// operatorNamespace is that of the controller, and elsewhere one of a tenant.
const (
	operatorNamespace = "modelbox-system"
	elsewhere         = "walk"
)

// target is an object that the controller's token may write, or one of the same kind that it may not.
type target struct {
	// name is the first cell of its row in docs/controller-token.md.
	name string
	// path is that of the collection of the objects, below /api or /apis. Subresource may be empty.
	path, subresource string
	// manifest is the stored object.
	manifest string
	// of is the Go type that has the fields.
	of any
	// also is changed together with each field.
	also []string
	to   any
}

const (
	podSpec    = `{containers: [{name: web, image: "web:1", ports: [{containerPort: 80}]}], securityContext: {runAsNonRoot: true}}`
	podOwner   = `spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}, annotations: {walk: a}}, spec: ` + podSpec + `}}`
	service    = `spec: {selector: {app: web}, ports: [{name: web, port: 80, targetPort: web}]}`
	eventOf    = `{eventTime: "2026-01-01T00:00:00.000000Z", series: {count: 2, lastObservedTime: "2026-01-01T00:00:00.000000Z"}, reportingInstance: "1", action: A, reason: A, type: Normal, regarding: {namespace: ` + elsewhere + `}, reportingController: `
	leaseSpec  = `{holderIdentity: a, leaseDurationSeconds: 15, leaseTransitions: 1, acquireTime: "2026-01-01T00:00:00.000000Z", renewTime: "2026-01-01T00:00:00.000000Z"}`
	webhooks   = `webhooks: [{name: walk.example.com, clientConfig: {service: {namespace: modelbox-system, name: modelbox-webhook}}, sideEffects: None, admissionReviewVersions: [v1]}, {name: walk2.example.com, clientConfig: {service: {namespace: modelbox-system, name: modelbox-webhook}}, sideEffects: None, admissionReviewVersions: [v1]}]`
	secretData = `{metadata: {annotations: {modelbox-operator.github.io/renew-certificate: now, other: a}}, data: {tls.crt: YQ==, tls.key: YQ==, ca.crt: YQ==, next.crt: YQ==, next.key: YQ==, other: YQ==}}`
)

// controlledBy returns the owner reference of a child that is called like its owner.
func controlledBy(apiVersion, kind, name string) string {
	return fmt.Sprintf("metadata: {ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: 6a1e2c55-0000-4000-8000-000000000000, controller: true}]}\n", apiVersion, kind, name)
}

var restartAnnotation = []string{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}

func targets() []target {
	const (
		deployments = "apps/v1/namespaces/" + elsewhere + "/deployments/"
		daemonSets  = "apps/v1/namespaces/" + elsewhere + "/daemonsets/"
		services    = "v1/namespaces/" + elsewhere + "/services/"
		leases      = "coordination.k8s.io/v1/namespaces/"
		events      = "events.k8s.io/v1/namespaces/" + elsewhere + "/events/"
		webhook     = "admissionregistration.k8s.io/v1/"
	)
	const (
		box         = `spec: {image: "nginx:1"}`
		scaleOfOurs = "`/scale` of a ModelBox, an App or a UnitedDeployment"
	)
	all := []target{
		{"a Deployment that is a child", deployments + "child", "", controlledBy("model.github.com/v1", "ModelBox", "child") + podOwner, &appsv1.Deployment{}, nil, nil},
		{"any other Deployment", deployments + "web", "", podOwner, &appsv1.Deployment{}, restartAnnotation, "2026-01-02T03:04:05Z"},
		{"`/scale` of any Deployment", deployments + "web", "scale", podOwner, &autoscalingv1.Scale{}, nil, nil},
		{scaleOfOurs, "model.github.com/v1/namespaces/" + elsewhere + "/modelboxes/web", "scale", box, &autoscalingv1.Scale{}, nil, nil},
		{scaleOfOurs, "app.huolala.cn/v1/namespaces/" + elsewhere + "/apps/web", "scale", box, &autoscalingv1.Scale{}, nil, nil},
		{scaleOfOurs, "extension.k8s.io/v1/namespaces/" + elsewhere + "/uniteddeployments/web", "scale", "spec: {deploymentName: web, replicas: 1}", &autoscalingv1.Scale{}, nil, nil},
		{"a DaemonSet that is a child", daemonSets + "child", "", controlledBy("mydomain.com/v1beta1", "Genericdaemon", "child") + podOwner, &appsv1.DaemonSet{}, nil, nil},
		{"any other DaemonSet", daemonSets + "web", "", podOwner, &appsv1.DaemonSet{}, restartAnnotation, "2026-01-02T03:04:05Z"},
		{"a Service that is a child", services + "child", "", controlledBy("app.huolala.cn/v1", "App", "child") + service, &corev1.Service{}, nil, nil},
		{"any other Service", services + "web", "", service, &corev1.Service{}, nil, nil},
		{"an Event of the controller", events + "child", "", eventOf + "modelbox-controller}", &eventsv1.Event{}, nil, nil},
		{"any other Event", events + "web", "", eventOf + "kubelet}", &eventsv1.Event{}, nil, nil},
		{"its Lease", leases + operatorNamespace + "/leases/modelbox-controller", "", "spec: " + leaseSpec, &coordinationv1.Lease{}, nil, nil},
		{"any other Lease", leases + elsewhere + "/leases/modelbox-controller", "", "spec: " + leaseSpec, &coordinationv1.Lease{}, nil, nil},
		{"the Secret of its webhook", "v1/namespaces/" + operatorNamespace + "/secrets/modelbox-webhook-tls", "", secretData, &corev1.Secret{}, nil, nil},
		{"any other Secret", "v1/namespaces/" + elsewhere + "/secrets/modelbox-webhook-tls", "", secretData, &corev1.Secret{}, nil, nil},
		{"its webhook configurations", webhook + "mutatingwebhookconfigurations/modelbox-webhook-" + operatorNamespace, "", webhooks, &admissionregistrationv1.MutatingWebhookConfiguration{}, nil, nil},
		{"its webhook configurations", webhook + "validatingwebhookconfigurations/modelbox-webhook-" + operatorNamespace, "", webhooks, &admissionregistrationv1.ValidatingWebhookConfiguration{}, nil, nil},
		{"any other webhook configuration", webhook + "validatingwebhookconfigurations/walk", "", webhooks, &admissionregistrationv1.ValidatingWebhookConfiguration{}, nil, nil},
	}
	for path, of := range map[string]any{
		"model.github.com/v1/namespaces/" + elsewhere + "/modelboxes/web":        &modelv1.ModelBox{},
		"app.huolala.cn/v1/namespaces/" + elsewhere + "/apps/web":                &appv1.App{},
		"mydomain.com/v1beta1/namespaces/" + elsewhere + "/genericdaemons/web":   &mydomainv1beta1.Genericdaemon{},
		"extension.k8s.io/v1/namespaces/" + elsewhere + "/uniteddeployments/web": &extensionv1.UnitedDeployment{},
		"mtsre.meitu.com/v1/namespaces/" + elsewhere + "/erus/web":               &mtsrev1.Eru{},
	} {
		name, manifest := "a ModelBox, an App, a Genericdaemon, a UnitedDeployment", box
		switch of.(type) {
		case *extensionv1.UnitedDeployment:
			manifest = "spec: {deploymentName: web, replicas: 1}"
		case *mtsrev1.Eru:
			name = "an Eru"
			manifest = "metadata: {ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: 6a1e2c55-0000-4000-8000-000000000000}]}\nspec: {deploymentName: web}"
		}
		all = append(all, target{name, path, "", manifest, of, nil, nil}, target{"`/status` of the five kinds", path, "status", manifest, of, nil, nil})
	}
	return all
}

// walker sends requests with the controller's identity, as dry runs.
type walker struct {
	client, admin rest.Interface
	mu            sync.Mutex
	// allowed has the fields that could be changed, by the name of the target and the verb.
	allowed map[string]map[string]bool
	// fields are those that were walked, and opaque those of which the API server accepted no value.
	objects, fields, opaque, requests, denied int
}

func (w *walker) send(ctx context.Context, verb, path string, kind types.PatchType, body []byte) (tree, error) {
	request := w.client.Verb(verb).AbsPath(absolute(path)).Param("dryRun", "All").Body(body)
	switch {
	case kind == types.ApplyYAMLPatchType:
		request = request.Param("force", "true")
		fallthrough
	case kind != "":
		request = request.SetHeader("Content-Type", string(kind))
	}
	if verb != "DELETE" {
		request = request.Param("fieldManager", "modelbox-eru")
	}
	result := request.Do(ctx)
	data, _ := result.Raw()
	err := result.Error() // It has the Status of the response, which Raw does not decode.
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	if err != nil {
		if isDenied(err) {
			w.denied++
		}
		return nil, err
	}
	var out tree
	return out, utiljson.Unmarshal(data, &out)
}

func absolute(path string) string {
	if strings.HasPrefix(path, "v1/") {
		return "/api/" + path
	}
	return "/apis/" + path
}

// isDenied reports whether the policy denied a request.
func isDenied(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'modelbox-controller")
}

func (w *walker) allow(name, cell string, paths ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := name + " | " + cell
	if w.allowed[key] == nil {
		w.allowed[key] = map[string]bool{}
	}
	for _, path := range paths {
		w.allowed[key][path] = true
	}
}

// change sends one change of a stored object, in the given form.
func (w *walker) change(ctx context.Context, t *target, form types.PatchType, stored, changed tree) (tree, error) {
	path := t.path
	if t.subresource != "" {
		path += "/" + t.subresource
	}
	before, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(changed)
	if err != nil {
		return nil, err
	}
	body := after
	switch form {
	case "":
		return w.send(ctx, "PUT", path, "", after)
	case types.JSONPatchType:
		body, err = json.Marshal([]tree{{"op": "replace", "path": "", "value": changed}})
	case types.MergePatchType:
		body, err = jsonpatch.CreateMergePatch(before, after)
	case types.StrategicMergePatchType:
		body, err = strategicpatch.CreateTwoWayMergePatch(before, after, t.of)
	case types.ApplyYAMLPatchType:
		applied := maps.Clone(changed)
		applied["metadata"] = maps.Clone(applied["metadata"].(tree))
		maps.DeleteFunc(applied["metadata"].(tree), func(name string, _ any) bool {
			return slices.Contains([]string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"}, name)
		})
		body, err = json.Marshal(applied)
	}
	if err != nil {
		return nil, err
	}
	return w.send(ctx, "PATCH", path, form, body)
}

// try changes one field to each of some values, until one is decided on.
func (w *walker) try(ctx context.Context, t *target, forms []types.PatchType, stored tree, e edit) error {
	for _, form := range forms {
		conclusive := false
		for _, changed := range e.values {
			response, err := w.change(ctx, t, form, stored, changed)
			switch {
			case err == nil:
				w.allow(t.name, "change", changedPaths(stored, response)...)
			case apierrors.IsForbidden(err) && !isDenied(err), apierrors.IsConflict(err) && !strings.HasPrefix(e.path, "metadata."),
				ctx.Err() != nil, apierrors.IsTooManyRequests(err), apierrors.IsTimeout(err):
				return fmt.Errorf("%s %s: %w", t.name, form, err)
			case !isDenied(err):
				continue // The API server does not accept the value.
			}
			conclusive = true
			if err == nil || !isLargest(lookup(changed, strings.Split(e.path, "."))) {
				break
			}
		}
		if !conclusive {
			w.mu.Lock()
			w.opaque++
			w.mu.Unlock()
		}
	}
	return nil
}

// formsOf returns the forms of a change that the API server has for a target.
func (t *target) forms() []types.PatchType {
	forms := []types.PatchType{"", types.JSONPatchType, types.MergePatchType, types.ApplyYAMLPatchType}
	if strings.HasPrefix(reflect.TypeOf(t.of).Elem().PkgPath(), "k8s.io/api/") {
		forms = append(forms, types.StrategicMergePatchType)
	}
	return forms
}

// edit is what is changed at once, by each of some values.
type edit struct {
	path   string
	values []tree
}

// edits returns all changes of an object. Without MODELBOX_LONG, those of few fields of a pod template.
func (t *target) edits(object tree) (out []edit, fields int) {
	also := func(changed any) tree {
		if t.also != nil {
			changed = with(changed, t.also, t.to)
		}
		return changed.(tree)
	}
	for _, f := range t.fields() {
		path := strings.Join(f.path, ".")
		if !long && strings.HasPrefix(path, "spec.template.spec") && hash(t.name+path)%16 != 0 {
			continue
		}
		fields++
		for _, place := range places(object, f.path) {
			current := lookup(object, place)
			e := edit{path: path}
			for _, value := range values(f, current) {
				e.values = append(e.values, also(with(object, place, value)))
			}
			if !long && len(place) > 2 && len(e.values) > 4 {
				e.values = e.values[:4]
			}
			out = append(out, e)
			if current != nil {
				out = append(out, edit{path, []tree{also(with(object, place, nil))}})
			}
		}
	}
	entries, _ := lookup(object, []string{"metadata", "managedFields"}).([]any)
	for _, forged := range forgeries(entries) {
		out = append(out, edit{"metadata.managedFields", []tree{also(with(object, []string{"metadata", "managedFields"}, forged))}})
	}
	return out, fields
}

// places returns the path of a field, and, if it is a value of a map, those of the values that are there.
func places(object tree, path []string) [][]string {
	out := [][]string{path}
	if last := len(path) - 1; last >= 0 && path[last] == "{}" {
		existing, _ := lookup(object, path[:last]).(tree)
		for name := range existing {
			out = append(out, append(slices.Clone(path[:last]), name))
		}
	}
	return out
}

var long = os.Getenv("MODELBOX_LONG") != ""

func hash(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return h.Sum32()
}

// object returns the manifest of a target with its kind and name.
func (t *target) object(tb testing.TB) tree {
	tb.Helper()
	data, err := yaml.YAMLToJSON([]byte(t.manifest))
	if err != nil {
		tb.Fatalf("%v in %s", err, t.manifest)
	}
	var out tree
	if err := utiljson.Unmarshal(data, &out); err != nil {
		tb.Fatal(err)
	}
	main := t.of
	if t.subresource == "scale" {
		main = map[string]any{
			"deployments": &appsv1.Deployment{}, "modelboxes": &modelv1.ModelBox{}, "apps": &appv1.App{}, "uniteddeployments": &extensionv1.UnitedDeployment{},
		}[filepath.Base(filepath.Dir(t.path))]
	}
	var gvk schema.GroupVersionKind
	if crd, ok := main.(*apiextensionsv1.CustomResourceDefinition); ok {
		gvk = schema.GroupVersionKind{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Kind: crd.Spec.Names.Kind}
	} else if gvk, err = env.Client.GroupVersionKindFor(main.(client.Object)); err != nil {
		tb.Fatal(err)
	}
	out["apiVersion"], out["kind"] = gvk.GroupVersion().String(), gvk.Kind
	for name, value := range map[string]any{"name": filepath.Base(t.path), "namespace": t.namespace()} {
		if value != "" {
			out = with(out, []string{"metadata", name}, value).(tree)
		}
	}
	return out
}

func (t *target) namespace() string {
	_, rest, _ := strings.Cut(t.path, "/namespaces/")
	namespace, _, _ := strings.Cut(rest, "/")
	return namespace
}

// creations tries to create the object of a target, and objects that differ in one field.
func (w *walker) creations(ctx context.Context, t *target, object tree) error {
	create := func(o tree) (tree, error) {
		body, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		return w.send(ctx, "POST", filepath.Dir(t.path), "", body)
	}
	base, err := create(object)
	if err != nil && !isDenied(err) {
		return fmt.Errorf("creating %s: %w", t.name, err)
	}
	if err == nil {
		w.allow(t.name, "create")
	} else {
		base = object
	}
	all, fields := t.edits(object)
	w.objects, w.fields = w.objects+1, w.fields+fields
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, e := range all {
		group.Go(func() error {
			for _, changed := range e.values {
				response, err := create(changed)
				if err == nil {
					w.allow(t.name, "create", changedPaths(base, response)...)
				}
				if err == nil || isDenied(err) && !isLargest(lookup(changed, strings.Split(e.path, "."))) {
					return nil
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// changes tries to change each field of the stored object of a target, and to delete it.
func (w *walker) changes(ctx context.Context, t *target) error {
	path := t.path
	if t.subresource == "scale" {
		path += "/scale"
	}
	data, err := w.admin.Get().AbsPath(absolute(path)).DoRaw(ctx)
	if err != nil {
		return err
	}
	var stored tree
	if err := utiljson.Unmarshal(data, &stored); err != nil {
		return err
	}
	all, fields := t.edits(stored)
	w.objects, w.fields = w.objects+1, w.fields+fields
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i, e := range all {
		forms := t.forms()
		if !long {
			forms = forms[i%len(forms):][:1]
			if e.path == "metadata.managedFields" {
				forms = []types.PatchType{types.JSONPatchType}
			}
		}
		group.Go(func() error { return w.try(groupCtx, t, forms, stored, e) })
	}
	if err := group.Wait(); err != nil || t.subresource != "" {
		return err
	}
	for _, path := range []string{t.path, filepath.Dir(t.path)} {
		_, err := w.send(ctx, "DELETE", path, "", nil)
		switch {
		case err == nil:
			w.allow(t.name, "delete", "yes")
		case !isDenied(err):
			return fmt.Errorf("deleting %s: %w", path, err)
		}
	}
	return nil
}

// isLargest reports whether a value is the largest number, after which smaller ones are tried.
func isLargest(value any) bool { return reflect.DeepEqual(value, int64(math.MaxInt32)) }

// documented returns the cells of the table in docs/controller-token.md, as fields, by the name of the
// object and the verb.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "controller-token.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(data), "| object | create | change | delete |\n|---|---|---|---|\n")
	if !found {
		t.Fatal("docs/controller-token.md has no table of what the policy allows")
	}
	text, _, _ = strings.Cut(text, "\n\n")
	out := map[string][]string{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			t.Fatalf("this row has not four cells: %s", line)
		}
		name := strings.TrimSpace(cells[0])
		for i, verb := range []string{"create", "change", "delete"} {
			key := name + " | " + verb
			switch cell := strings.TrimSpace(cells[i+1]); cell {
			case "no":
			case "yes":
				out[key] = []string{"yes"}
			default:
				out[key] = []string{}
				for _, field := range regexp.MustCompile("`[^`]+`").FindAllString(cell, -1) {
					out[key] = append(out[key], strings.ReplaceAll(strings.Trim(field, "`]"), "[", "."))
				}
			}
		}
	}
	return out
}

// covers reports whether a field of the table is a path, or has it below it. A number of the table is a bound.
func covers(listed, path string) bool {
	listed, _, bounded := strings.Cut(listed, "=") // TestTheLeaseIsBounded tries the bounds.
	if !bounded {
		path, _, _ = strings.Cut(path, "=")
	}
	return listed == path || strings.HasPrefix(path, listed+".")
}

// Every field of every object that the token may write is changed by every verb. What the policy
// allows is what docs/controller-token.md lists, and all that is listed is allowed.
func TestTheControllersTokenWritesWhatIsDocumented(t *testing.T) {
	w := newWalker(t)
	all := append(targets(), targetsAround(installCRDs(t))...)
	for i := range all {
		if all[i].subresource == "" {
			if err := w.creations(t.Context(), &all[i], all[i].object(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range all {
		if all[i].subresource == "" {
			applyTarget(t, &all[i])
		}
	}
	for i := range all {
		if err := w.changes(t.Context(), &all[i]); err != nil {
			t.Error(err)
		}
	}
	want := documented(t)
	for key, paths := range w.allowed {
		listed, ok := want[key]
		if !ok {
			t.Errorf("%s: allowed, and docs/controller-token.md does not list it: %v", key, slices.Sorted(maps.Keys(paths)))
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			if !slices.ContainsFunc(listed, func(l string) bool { return covers(l, path) }) {
				t.Errorf("%s: %s is allowed, and docs/controller-token.md does not list it", key, path)
			}
		}
	}
	for key, listed := range want {
		for _, l := range listed {
			found := slices.ContainsFunc(slices.Collect(maps.Keys(w.allowed[key])), func(path string) bool { return covers(l, path) })
			if !found {
				t.Errorf("%s: docs/controller-token.md lists %s, and it is not allowed", key, l)
			}
		}
		if w.allowed[key] == nil {
			t.Errorf("%s: docs/controller-token.md lists it, and it is not allowed", key)
		}
	}
	t.Logf("%d objects, %d fields, %d requests: %d denied; %d changes of which the API server accepts no value", w.objects, w.fields, w.requests, w.denied, w.opaque)
}

// thief is an account in the namespace of the operator, with all permissions, and bounded by the
// policy as in an install without cert-manager, which allows most.
const thief = "system:serviceaccount:" + operatorNamespace + ":thief"

func newWalker(t *testing.T) *walker {
	t.Helper()
	for _, name := range []string{operatorNamespace, elsewhere} {
		if err := newNamespace(t.Context(), name, nil); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	w := &walker{allowed: map[string]map[string]bool{}}
	cfg, err := env.As(thief)
	if err != nil {
		t.Fatal(err)
	}
	cfg.WarningHandler = rest.NoWarnings{}
	keeps := func(policy *admissionregistrationv1.ValidatingAdmissionPolicy) {
		policy.Spec.Variables[0].Expression = "true"
	}
	if err := env.BindControllers(t.Context(), "-thief", thief, cfg, keeps); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	w.client, w.admin = restClient(t, cfg), restClient(t, env.Config)
	return w
}

func restClient(t *testing.T, cfg *rest.Config) rest.Interface {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return clientset.Discovery().RESTClient()
}

// applyTarget creates the object of a target, as one that Argo CD applies.
func applyTarget(t *testing.T, target *target) {
	t.Helper()
	body, err := json.Marshal(target.object(t))
	if err != nil {
		t.Fatal(err)
	}
	err = restClient(t, env.Config).Patch(types.ApplyYAMLPatchType).AbsPath(absolute(target.path)).Param("fieldManager", "argocd").Body(body).Do(t.Context()).Error()
	if err != nil {
		t.Fatalf("creating %s: %v", target.path, err)
	}
}

// A restart, as the controller sends it, takes restartedAt from the managers that had it. It is allowed
// whatever managers there are.
func TestRestartsPassThePolicy(t *testing.T) {
	w := newWalker(t)
	patch := func(name string, kind types.PatchType, body string, params ...string) func(rest.Interface) error {
		return func(c rest.Interface) error {
			request := c.Patch(kind).AbsPath("/apis/apps/v1/namespaces/" + elsewhere + "/deployments/" + name)
			for i := 0; i < len(params); i += 2 {
				request = request.Param(params[i], params[i+1])
			}
			return request.Body([]byte(body)).Do(t.Context()).Error()
		}
	}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	kubectl := func(stdin string, args ...string) {
		t.Helper()
		_, err := env.Kubectl(stdin, append([]string{"-n", elsewhere}, args...)...)
		must(strings.Join(args, " "), err)
	}
	without := strings.Replace(podOwner, ", annotations: {walk: a}", "", 1)
	restarted := strings.Replace(podOwner, "walk: a", `kubectl.kubernetes.io/restartedAt: "2020-01-01T00:00:00Z"`, 1)
	for name, spec := range map[string]string{"restart-a": podOwner, "restart-b": without, "restart-c": restarted} {
		manifest := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + "}\n" + spec
		for _, state := range []string{"server-side", "client-side", "many", "unknown"} {
			kubectl("", "delete", "deployment", name, "--ignore-not-found", "--wait")
			switch state {
			case "server-side":
				kubectl(manifest, "apply", "--server-side", "--field-manager=argocd", "-f", "-")
			case "client-side":
				kubectl(manifest, "apply", "-f", "-")
				kubectl("", "rollout", "restart", "deployment/"+name)
			case "many":
				kubectl(manifest, "apply", "-f", "-")
				for i := range 9 {
					must("an update", patch(name, types.MergePatchType, fmt.Sprintf(`{"metadata":{"labels":{"l%d":"a"}}}`, i), "fieldManager", fmt.Sprint("m", i))(w.admin))
				}
			case "unknown": // The API server keeps no entries before the next apply.
				kubectl(manifest, "apply", "-f", "-")
				must("clearing", patch(name, types.MergePatchType, `{"metadata":{"managedFields":[{}]}}`)(w.admin))
			}
			for _, at := range []string{"2026-01-02T03:04:05Z", "2026-01-03T03:04:05Z"} {
				body := `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"` + at + `"}}}}}`
				must(name+" "+state+" at "+at, patch(name, types.MergePatchType, body, "fieldManager", "modelbox-eru")(w.client))
				if state != "server-side" {
					kubectl("", "rollout", "restart", "deployment/"+name)
				}
			}
			if err := patch(name, types.MergePatchType, `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-02-02T03:04:05Z"}}}}}`, "fieldManager", "argocd2")(w.client); strings.HasSuffix(state, "side") && !isDenied(err) {
				t.Errorf("%s %s: another manager's entry: %v", name, state, err)
			}
		}
	}
}

// The bounds of the numbers in the Lease are exact.
func TestTheLeaseIsBounded(t *testing.T) {
	w := newWalker(t)
	lease := target{path: "coordination.k8s.io/v1/namespaces/" + operatorNamespace + "/leases/modelbox-controller", manifest: "spec: " + leaseSpec, of: &coordinationv1.Lease{}}
	applyTarget(t, &lease)
	for _, test := range []struct {
		field   string
		value   int64
		allowed bool
	}{{"leaseDurationSeconds", 60, true}, {"leaseDurationSeconds", 61, false}, {"leaseTransitions", 2, true}, {"leaseTransitions", 3, false}} {
		body := fmt.Appendf(nil, `{"spec":{%q:%d}}`, test.field, test.value)
		_, err := w.send(t.Context(), "PATCH", lease.path, types.MergePatchType, body)
		if test.allowed && err != nil || !test.allowed && !isDenied(err) {
			t.Errorf("%s %d: %v", test.field, test.value, err)
		}
	}
}

// Objects of kinds that the controller does not write, in addition to those that each cluster has.
const otherObjects = `
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: ` + podSpec + `}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}
---
{apiVersion: v1, kind: Secret, metadata: {name: web}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: web}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: walk}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], hostPath: {path: /etc}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: web}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: web, image: "web:1"}]}}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: web}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web}, spec: {podSelector: {}}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: walk-other}}
---
{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: other}, spec: {image: "nginx:1"}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: other}, ` + podOwner + `}
---
{apiVersion: v1, kind: Service, metadata: {name: other}, ` + service + `}
`

// Of each resource that the API server has, an object is changed, deleted and copied, and each of its
// subresources is changed, with all permissions and the identity of the controller.
func TestTheControllersTokenWritesNoOtherKind(t *testing.T) {
	w := newWalker(t)
	cfg, err := env.As("system:serviceaccount:" + operatorNamespace + ":modelbox-controller")
	if err != nil {
		t.Fatal(err)
	}
	cfg.WarningHandler = rest.NoWarnings{}
	w.client = restClient(t, cfg)
	if _, err := env.Kubectl(otherObjects, "-n", elsewhere, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	clientset, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := clientset.Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]bool{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			// The API server evaluates no policy for policies; the role has no permission on them.
			if !slices.Contains(r.Verbs, "patch") || strings.HasSuffix(r.Name, "admissionpolicies") || strings.HasSuffix(r.Name, "admissionpolicybindings") {
				continue
			}
			w.refuse(t, list.GroupVersion, r.Name, refused)
		}
	}
	pod, deployment := "v1/namespaces/"+elsewhere+"/pods/web/", "apps/v1/namespaces/"+elsewhere+"/deployments/other/"
	for path, body := range map[string]string{
		pod + "eviction": `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"web"}}`,
		pod + "binding":  `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"web"},"target":{"kind":"Node","name":"node"}}`,
		"v1/namespaces/" + elsewhere + "/serviceaccounts/web/token": `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`,
	} {
		if _, err := w.send(t.Context(), "POST", path, "", []byte(body)); !isDenied(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{pod + "status", deployment + "status", "v1/namespaces/" + elsewhere + "/services/other/status",
		"v1/namespaces/" + elsewhere + "/status"} {
		if _, err := w.send(t.Context(), "PATCH", path, types.MergePatchType, []byte(`{"metadata":{"labels":{"walk":"a"}}}`)); !isDenied(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, name := range []string{"pods", "secrets", "configmaps", "serviceaccounts", "namespaces", "jobs", "rolebindings", "clusterroles", "deployments", "services",
		"mutatingwebhookconfigurations", "customresourcedefinitions", "modelboxes"} {
		if !refused[name] {
			t.Errorf("%s were not tried", name)
		}
	}
	t.Logf("%d resources, %d requests", len(refused), w.requests)
}

// refuse expects that an object of a resource can be neither changed, deleted nor copied.
func (w *walker) refuse(t *testing.T, groupVersion, resource string, refused map[string]bool) {
	t.Helper()
	data, err := w.admin.Get().AbsPath(absolute(groupVersion + "/" + resource)).DoRaw(t.Context())
	var list struct {
		Items []tree `json:"items"`
	}
	if err == nil {
		err = utiljson.Unmarshal(data, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range list.Items {
		namespace, _ := lookup(object, []string{"metadata", "namespace"}).(string)
		// Other tests have objects in namespaces of their own, which may be gone at any time, and children.
		if namespace != "" && namespace != elsewhere || lookup(object, []string{"metadata", "ownerReferences"}) != nil || resource == "events" || resource == "leases" {
			continue
		}
		collection := groupVersion + "/" + resource
		if namespace != "" {
			collection = groupVersion + "/namespaces/" + namespace + "/" + resource
		}
		name := lookup(object, []string{"metadata", "name"}).(string)
		_, err := w.send(t.Context(), "PATCH", collection+"/"+name, types.MergePatchType, []byte(`{"metadata":{"labels":{"walk":"a"}}}`))
		if !isDenied(err) {
			t.Errorf("%s %s is changed: %v", resource, name, err)
		}
		if _, err := w.send(t.Context(), "DELETE", collection+"/"+name, "", nil); !isDenied(err) && !apierrors.IsForbidden(err) {
			t.Errorf("%s %s is deleted: %v", resource, name, err)
		}
		metadata := tree{"name": "walk-copy"}
		if namespace != "" {
			metadata["namespace"] = namespace
		}
		body, err := json.Marshal(with(with(object, []string{"metadata"}, metadata), []string{"status"}, nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.send(t.Context(), "POST", collection, "", body); err == nil {
			t.Errorf("%s %s is copied", resource, name)
		}
		refused[resource] = true
		return
	}
}
