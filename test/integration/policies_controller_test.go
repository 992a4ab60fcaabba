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
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	openapi "k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// operatorNamespace is that of the controller, and elsewhere one of a tenant.
const (
	operatorNamespace = "modelbox-system"
	elsewhere         = "walk"
)

// controllerTable is testdata/controller.yaml.
type controllerTable struct {
	Targets  []target
	Children []struct {
		Name, Path, Kind string
		// Made are specs that the operator makes, and Refused those that do more.
		Made, Refused []string
	}
	Requests []struct {
		Verb, Path, Body string
		Allowed          bool
	}
	Others string
}

// target is an object that the controller's token may write, or one of the same kind that it may not.
type target struct {
	// Name is the first cell of its row in docs/controller-token.md.
	Name string
	// Path is that of the object, below /api or /apis.
	Path, Kind, Subresource string
	// Manifest is the rest of the stored object.
	Manifest tree
	// Restart is whether each change also restarts the object.
	Restart bool
}

func readController(t *testing.T) *controllerTable {
	t.Helper()
	data, err := os.ReadFile("testdata/controller.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := &controllerTable{}
	if err := yaml.UnmarshalStrict(data, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// child returns an object with a controller reference to the App of its name.
func child(path, kind, name, spec string) target {
	text := strings.NewReplacer("name: child", "name: "+name, "instance: child", "instance: "+name).Replace(spec)
	manifest := tree{}
	if err := yaml.Unmarshal([]byte("metadata: {ownerReferences: [{apiVersion: app.huolala.cn/v1, kind: App, name: "+name+
		", uid: 6a1e2c55-0000-4000-8000-000000000000, controller: true}]}\nspec: "+text), &manifest); err != nil {
		panic(err) // The table is wrong.
	}
	return target{Path: path + name, Kind: kind, Manifest: manifest}
}

// all returns the targets, and those of the children around the pods: one that is controlled, and one that is not.
func (c *controllerTable) all() []target {
	out := c.Targets
	for _, of := range c.Children {
		owned := child(of.Path, of.Kind, "child", of.Made[0])
		owned.Name = of.Name
		other := target{Name: "any other object of these five kinds", Path: of.Path + "web", Kind: of.Kind, Manifest: tree{"spec": owned.Manifest["spec"]}}
		out = append(out, owned, other)
	}
	return out
}

// resource is the last part of the path of the collection.
func (t *target) resource() string { return filepath.Base(filepath.Dir(t.Path)) }

func (t *target) apiVersion() string {
	version, _, _ := strings.Cut(t.Path, "/namespaces/")
	if version == t.Path {
		version = filepath.Dir(filepath.Dir(t.Path))
	}
	return version
}

// object returns the manifest of a target with its kind and name.
func (t *target) object() tree {
	data, err := json.Marshal(t.Manifest)
	if err != nil {
		panic(err) // It was read from YAML.
	}
	var out tree
	if err := utiljson.Unmarshal(data, &out); err != nil { // Integers become int64.
		panic(err)
	}
	out["apiVersion"], out["kind"] = t.apiVersion(), t.Kind
	out = with(out, []string{"metadata", "name"}, filepath.Base(t.Path)).(tree)
	if _, rest, namespaced := strings.Cut(t.Path, "/namespaces/"); namespaced {
		namespace, _, _ := strings.Cut(rest, "/")
		out = with(out, []string{"metadata", "namespace"}, namespace).(tree)
	}
	return out
}

// installCRDs installs the optional kinds until the test ends.
func installCRDs(t *testing.T) {
	t.Helper()
	options := envtest.CRDInstallOptions{Paths: []string{filepath.Join(testenv.Root(), "test", "crds")}, MaxTime: time.Minute}
	installed, err := envtest.InstallCRDs(env.Config, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := envtest.UninstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: installed}); err != nil {
			t.Error(err)
		}
		for _, crd := range installed {
			if _, err := env.Kubectl("", "wait", "--for=delete", "--timeout=60s", "crd/"+crd.Name); err != nil {
				t.Error(err)
			}
		}
	})
}

// walker sends requests with the controller's identity, as dry runs.
type walker struct {
	client, admin rest.Interface
	schemas       map[schema.GroupVersionKind]*openapi.Schema
	mu            sync.Mutex
	// allowed has the fields that could be changed, by the name of the target and the verb.
	allowed map[string]map[string]bool
	// fields are those that were walked, and opaque those of which the API server accepted no value.
	fields, opaque, requests, denied int
}

// send sends a request. A PUT is an update, and a PATCH is of the form of its content type. What connects has
// no dry run.
func (w *walker) send(ctx context.Context, verb, path string, form types.PatchType, body []byte) (tree, error) {
	request := w.client.Verb(verb).AbsPath(absolute(path)).Body(body)
	if !strings.HasSuffix(path, "/exec") {
		request = request.Param("dryRun", "All")
	}
	if form == types.ApplyYAMLPatchType {
		request = request.Param("force", "true")
	}
	if form != "" {
		request = request.SetHeader("Content-Type", string(form))
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
	if isDenied(err) {
		w.denied++
	}
	if err != nil {
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
	return err != nil && apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'modelbox-controller")
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

// change sends a changed object as an update, or as an apply.
func (w *walker) change(ctx context.Context, t *target, form types.PatchType, changed tree) (tree, error) {
	path, verb := t.Path, "PUT"
	if t.Subresource != "" {
		path += "/" + t.Subresource
	}
	if form == types.ApplyYAMLPatchType {
		verb = "PATCH"
		metadata := maps.Clone(changed["metadata"].(tree))
		maps.DeleteFunc(metadata, func(name string, _ any) bool {
			return slices.Contains([]string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp"}, name)
		})
		changed = with(changed, []string{"metadata"}, metadata).(tree)
	}
	body, err := json.Marshal(changed)
	if err != nil {
		return nil, err
	}
	return w.send(ctx, verb, path, form, body)
}

// try changes one field to each of some values, until one is decided on.
func (w *walker) try(ctx context.Context, t *target, forms []types.PatchType, stored tree, e edit) error {
	for _, form := range forms {
		conclusive := false
		for _, changed := range e.values {
			response, err := w.change(ctx, t, form, changed)
			switch {
			case err == nil:
				w.allow(t.Name, "change", changedPaths(stored, response)...)
			case apierrors.IsForbidden(err) && !isDenied(err), apierrors.IsConflict(err) && !strings.HasPrefix(e.path, "metadata."),
				ctx.Err() != nil, apierrors.IsTooManyRequests(err), apierrors.IsTimeout(err):
				return fmt.Errorf("%s %s: %w", t.Name, form, err)
			case !isDenied(err) && !strings.Contains(err.Error(), "immutable"):
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

// schemaOf returns the schema of a kind. The API server publishes that of a new CRD after a moment.
func (w *walker) schemaOf(tb testing.TB, gvk schema.GroupVersionKind) *openapi.Schema {
	tb.Helper()
	if w.schemas[gvk] == nil {
		clientset, err := kubernetes.NewForConfig(env.Config)
		if err != nil {
			tb.Fatal(err)
		}
		published := resolver.ClientDiscoveryResolver{Discovery: clientset.Discovery()}
		err = wait.PollUntilContextTimeout(tb.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			w.schemas[gvk], err = published.ResolveSchema(gvk)
			return err == nil, nil
		})
		if err != nil {
			tb.Fatalf("the schema of %s: %v", gvk, err)
		}
	}
	return w.schemas[gvk]
}

// edit is what is changed at once, by each of some values.
type edit struct {
	path   string
	values []tree
}

// edits returns all changes of an object. Without MODELBOX_LONG, those of few of the fields that are deep in a spec.
func (w *walker) edits(tb testing.TB, t *target, object tree) (out []edit) {
	tb.Helper()
	root := w.schemaOf(tb, schema.FromAPIVersionAndKind(t.apiVersion(), t.Kind))
	if t.Subresource == "scale" { // A Scale has no schema of its own.
		replicas := openapi.Schema{SchemaProps: openapi.SchemaProps{Properties: map[string]openapi.Schema{"replicas": *openapi.Int32Property()}}}
		root = &openapi.Schema{SchemaProps: openapi.SchemaProps{Properties: map[string]openapi.Schema{
			"metadata": root.Properties["metadata"], "spec": replicas, "status": replicas,
		}}}
	}
	add := func(path string, place []string, values ...any) {
		e := edit{path: path}
		for _, value := range values {
			changed := with(object, place, value)
			if t.Restart {
				changed = with(changed, []string{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}, "2026-01-02T03:04:05Z")
			}
			e.values = append(e.values, changed.(tree))
		}
		out = append(out, e)
	}
	for _, f := range walkSchema(root) {
		path := strings.Join(f.path, ".")
		deep := len(f.path) > 5 || strings.HasPrefix(path, "spec.template.spec") || strings.HasPrefix(path, "spec.podTemplate") ||
			len(f.path) > 3 && f.path[0] == "spec" && strings.HasPrefix(t.Name, "a ModelBox, ") // Of which nothing may be written.
		if path == "kind" || path == "apiVersion" || !long && deep && hash(t.Name+path)%8 != 0 {
			continue
		}
		w.fields++
		for _, place := range places(object, f.path) {
			current := lookup(object, place)
			tried := values(f, current)
			if !long && (len(place) > 2 || place[0] == "metadata") && len(tried) > 4 {
				tried = tried[:4]
			}
			add(path, place, tried...)
			if current != nil {
				add(path, place, nil)
			}
		}
	}
	entries, _ := lookup(object, []string{"metadata", "managedFields"}).([]any)
	for _, forged := range forgeries(entries) {
		add("metadata.managedFields", []string{"metadata", "managedFields"}, forged)
	}
	return out
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

// creations tries to create the object of a target, and objects that differ in one field.
func (w *walker) creations(tb testing.TB, t *target) error {
	tb.Helper()
	create := func(o tree) (tree, error) {
		body, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		return w.send(tb.Context(), "POST", filepath.Dir(t.Path), "", body)
	}
	object := t.object()
	base, err := create(object)
	if err != nil && !isDenied(err) {
		return fmt.Errorf("creating %s: %w", t.Name, err)
	}
	denied := err != nil
	if !denied {
		w.allow(t.Name, "create")
	} else {
		base = object
	}
	group := errgroup.Group{}
	group.SetLimit(8)
	for _, e := range w.edits(tb, t, object) {
		if denied && !long && strings.Count(e.path, ".") > 2 && !strings.HasPrefix(e.path, "metadata.") {
			continue // No value deep in a spec makes a creation an allowed one.
		}
		group.Go(func() error {
			for _, changed := range e.values {
				response, err := create(changed)
				if err == nil {
					w.allow(t.Name, "create", changedPaths(base, response)...)
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
func (w *walker) changes(tb testing.TB, t *target) error {
	tb.Helper()
	ctx, path := tb.Context(), t.Path
	if t.Subresource == "scale" {
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
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i, e := range w.edits(tb, t, stored) {
		forms := []types.PatchType{"", types.ApplyYAMLPatchType}
		switch {
		case e.path == "metadata.managedFields":
			forms = forms[:1]
		case !long:
			forms = forms[i%2:][:1]
		}
		group.Go(func() error { return w.try(groupCtx, t, forms, stored, e) })
	}
	if err := group.Wait(); err != nil || t.Subresource != "" {
		return err
	}
	for _, path := range []string{t.Path, filepath.Dir(t.Path)} {
		_, err := w.send(ctx, "DELETE", path, "", nil)
		switch {
		case err == nil:
			w.allow(t.Name, "delete", "yes")
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
	installCRDs(t)
	table := readController(t)
	all := table.all()
	for i := range all {
		if all[i].Subresource == "" {
			if err := w.creations(t, &all[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range all {
		if all[i].Subresource == "" {
			w.apply(t, &all[i])
		}
	}
	for i := range all {
		if err := w.changes(t, &all[i]); err != nil {
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
	t.Logf("%d fields, %d requests: %d denied; %d changes of which the API server accepts no value", w.fields, w.requests, w.denied, w.opaque)
	t.Run("forged children around the pods", func(t *testing.T) { w.forge(t, table) })
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
	w := &walker{allowed: map[string]map[string]bool{}, schemas: map[schema.GroupVersionKind]*openapi.Schema{}}
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

// apply creates the object of a target, as one that Argo CD applies.
func (w *walker) apply(t *testing.T, target *target) {
	t.Helper()
	if err := w.write("PATCH", target.Path, types.ApplyYAMLPatchType, "argocd", target.object()); err != nil {
		t.Fatalf("creating %s: %v", target.Path, err)
	}
}

// write sends a write of an administrator.
func (w *walker) write(verb, path string, form types.PatchType, manager string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	request := w.admin.Verb(verb).AbsPath(absolute(path)).Param("fieldManager", manager).Body(body)
	if form != "" {
		request = request.SetHeader("Content-Type", string(form))
	}
	return request.Do(context.Background()).Error()
}

// A restart, as the controller sends it, takes restartedAt from the managers that had it. It is allowed
// whatever managers there are.
func TestRestartsPassThePolicy(t *testing.T) {
	w := newWalker(t)
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	const deployments = "apps/v1/namespaces/" + elsewhere + "/deployments"
	restart := func(at string) tree {
		return with(nil, []string{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}, at).(tree)
	}
	web := readController(t).Targets[1]
	for name, annotations := range map[string]any{"a": tree{"walk": "a"}, "b": nil, "c": tree{"kubectl.kubernetes.io/restartedAt": "2020-01-01T00:00:00Z"}} {
		for _, state := range []string{"server-side", "client-side", "many", "unknown"} {
			name := unique("restart-" + name + "-" + state)
			path := deployments + "/" + name
			object := with(with(web.object(), []string{"metadata", "name"}, name), []string{"spec", "template", "metadata", "annotations"}, annotations).(tree)
			asKubectl := func(at string) {
				must("rollout restart", w.write("PATCH", path, types.StrategicMergePatchType, "kubectl-rollout", restart(at)))
			}
			if state == "server-side" {
				must(name, w.write("PATCH", path, types.ApplyYAMLPatchType, "argocd", object))
			} else {
				must(name, w.write("POST", deployments, "", "kubectl-client-side-apply", object))
			}
			switch state {
			case "client-side":
				asKubectl("2026-01-01T03:04:05Z")
			case "many":
				for i := range 9 {
					label := with(nil, []string{"metadata", "labels", fmt.Sprint("l", i)}, "a")
					must("an update", w.write("PATCH", path, types.MergePatchType, fmt.Sprint("m", i), label))
				}
			case "unknown": // The API server keeps no entries before the next apply.
				must("clearing", w.write("PATCH", path, types.MergePatchType, "m", tree{"metadata": tree{"managedFields": []any{tree{}}}}))
			}
			for i, at := range []string{"2026-01-02T03:04:05Z", "2026-01-03T03:04:05Z"} {
				must(name+" at "+at, w.restart(t.Context(), path, "modelbox-eru", restart(at)))
				if state != "server-side" {
					asKubectl(fmt.Sprintf("2026-01-0%dT04:00:00Z", i+2))
				}
			}
			if err := w.restart(t.Context(), path, "argocd2", restart("2026-02-02T03:04:05Z")); strings.HasSuffix(state, "side") && !isDenied(err) {
				t.Errorf("%s: another manager's entry: %v", name, err)
			}
		}
	}
}

// restart sends the patch of a restart with the controller's identity, not as a dry run.
func (w *walker) restart(ctx context.Context, path, manager string, patch tree) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return w.client.Patch(types.MergePatchType).AbsPath(absolute(path)).Param("fieldManager", manager).Body(body).Do(ctx).Error()
}

// forge expects that the token makes around the pods only what the operator makes, whatever it puts into the controller reference.
func (w *walker) forge(t *testing.T, table *controllerTable) {
	t.Helper()
	for _, of := range table.Children {
		stored := child(of.Path, of.Kind, "stored", of.Made[0])
		w.apply(t, &stored)
		for i, spec := range slices.Concat(of.Made, of.Refused) {
			created, changed := child(of.Path, of.Kind, "forged", spec), child(of.Path, of.Kind, "stored", spec)
			_, err := w.send(t.Context(), "POST", filepath.Dir(created.Path), "", encode(t, created.object()))
			replace := encode(t, []tree{{"op": "replace", "path": "/spec", "value": changed.object()["spec"]}})
			_, errOfChange := w.send(t.Context(), "PATCH", stored.Path, types.JSONPatchType, replace)
			for verb, err := range map[string]error{"create": err, "change to": errOfChange} {
				if made := i < len(of.Made); made && err != nil || !made && !isDenied(err) {
					t.Errorf("%s: %s %s: %v", of.Name, verb, spec, err)
				}
			}
		}
	}
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Every resource that the role, or the role of a component, lets the controller write is walked, so that a new one has to be.
func TestEveryResourceOfTheRolesIsWalked(t *testing.T) {
	t.Parallel()
	walked := map[string]bool{}
	for _, target := range readController(t).all() {
		name := target.resource()
		if target.Subresource != "" {
			name += "/" + target.Subresource
		}
		walked[name] = true
	}
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "*", "*role*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	written := 0
	for _, file := range append(files, filepath.Join(testenv.Root(), "config", "controller", "generated", "role.yaml")) {
		data, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = data.Close() }()
		for documents := utilyaml.NewYAMLOrJSONDecoder(data, 4096); ; {
			var role rbacv1.ClusterRole
			if documents.Decode(&role) != nil {
				break
			}
			for _, rule := range role.Rules {
				reads := !slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) })
				if reads || !strings.HasPrefix(role.Name, "modelbox-controller") {
					continue
				}
				for _, resource := range rule.Resources {
					written++
					// No request changes finalizers by that path; it is what blockOwnerDeletion needs. Reviews are no objects.
					if !walked[resource] && !strings.HasSuffix(resource, "/finalizers") && !strings.HasSuffix(resource, "reviews") {
						t.Errorf("%s: the controller may %v %s, and no test walks its fields", file, rule.Verbs, resource)
					}
				}
			}
		}
	}
	if written < 20 {
		t.Errorf("%d resources are written, want 20 at least", written)
	}
}

// Of each resource that the API server has, an object is changed, deleted and copied, and some of their
// subresources are changed, with all permissions and the identity of the controller.
func TestTheControllersTokenWritesNoOtherKind(t *testing.T) {
	w, table := newWalker(t), readController(t)
	if _, err := env.Kubectl(table.Others, "-n", elsewhere, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	for i, of := range table.Targets {
		if of.Name == "its Lease" || of.Name == "the Secret of its webhook" {
			w.apply(t, &table.Targets[i])
		}
	}
	for _, r := range table.Requests {
		form := map[string]types.PatchType{"PATCH": types.MergePatchType}[r.Verb]
		if _, err := w.send(t.Context(), r.Verb, r.Path, form, []byte(r.Body)); r.Allowed && err != nil || !r.Allowed && !isDenied(err) {
			t.Errorf("%s %s %s: %v", r.Verb, r.Path, r.Body, err)
		}
	}
	cfg, err := env.As("system:serviceaccount:" + operatorNamespace + ":modelbox-controller")
	if err != nil {
		t.Fatal(err)
	}
	cfg.WarningHandler = rest.NoWarnings{}
	w.client = restClient(t, cfg)
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
