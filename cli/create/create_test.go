// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	webhook "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/test/extremes"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

const head = "apiVersion: model.github.com/v1\nkind: ModelBox\n"

func request(body string) create.Request {
	doc := manifest.Parse("", []byte(body))[0]
	return create.Request{Object: doc.Object, Duplicates: doc.Duplicates, Namespace: "default"}
}

func dry(body string) create.Response {
	return create.Dry(kinds.ModelBox(), request(body))
}

// findings returns the fields of all errors, in any order.
func findings(r *create.Response) []string {
	var out []string
	for _, err := range r.Strict {
		out = append(out, err.Error())
	}
	for _, err := range r.Invalid {
		out = append(out, err.Field)
	}
	slices.Sort(out)
	return out
}

// What is wrong is found by the decoder, the schema, the rules of metadata or those of the kind,
// and all of it is reported at once.
func TestErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body string
		want []string
	}{
		"valid":                     {"metadata: {name: web}\nspec: {image: 'a:1'}", nil},
		"no metadata":               {"spec: {image: 'a:1'}", []string{"metadata.name"}},
		"no spec":                   {"metadata: {name: web}", []string{"spec", "spec.image"}},
		"a null":                    {"metadata: {name: web}\nspec: {image: 'a:1', replicas: null, ports: null}", nil},
		"not an object":             {"metadata: {name: web}\nspec: []", []string{"spec"}},
		"a name":                    {"metadata: {name: A_b}\nspec: {image: 'a:1'}", []string{"metadata.name"}},
		"labels":                    {"metadata: {name: web, labels: {a b: c}}\nspec: {image: 'a:1'}", []string{"metadata.labels"}},
		"annotations":               {"metadata: {name: web, annotations: {a b: c}}\nspec: {image: 'a:1'}", []string{"metadata.annotations"}},
		"unknown fields":            {"metadata: {name: web, lables: {}}\nspec: {image: 'a:1', imag: b}", []string{`unknown field "metadata.lables"; the nearest one is metadata.labels`, `unknown field "spec.imag"; the nearest one is spec.image`}},
		"duplicates":                {"metadata: {name: web}\nspec:\n  image: a:1\n  image: b:1", []string{`line 6: key "image" already set in map`}},
		"several wrong types":       {"metadata: {name: web}\nspec: {image: 1, replicas: a, ports: [{port: a}]}", []string{"spec.image", "spec.ports[0].port", "spec.replicas"}},
		"an int or a string":        {"metadata: {name: web}\nspec: {image: 'a:1', ports: [{port: 80, targetPort: http}, {port: 81, targetPort: 81}]}", []string{"spec.ports[0].targetPort"}},
		"only the schema's":         {"metadata: {name: web}\nspec: {image: 'a:1', serviceType: A}", []string{"spec.serviceType"}},
		"a long list":               {"metadata: {name: web}\nspec: {image: 'a:1', envs: [" + strings.Repeat("{name: A},", 5000) + "]}", []string{"spec.envs"}},
		"the rules and the decoder": {"metadata: {name: web}\nspec: {image: '', replicas: -1, rollingUpdate: 0, x: 1, ports: [{port: 0}]}", []string{"spec.image", "spec.ports[0].port", "spec.replicas", "spec.rollingUpdate", `unknown field "spec.x"`}},
		"a large exponent":          {"metadata: {name: web}\nspec: {image: 'a:1', resources: {limits: {cpu: 1e999999999, memory: '1e-999999999'}}}", []string{"spec.resources.limits.cpu", "spec.resources.limits.memory"}},
		"an exponent in a name":     {"metadata: {name: web}\nspec: {image: 'a:1', podTemplate: {spec: {overhead: {hugepages-1e999999999: '1'}}}}", []string{"spec.podTemplate.spec.overhead[hugepages-1e999999999]"}},
		"a pod template":            {"metadata: {name: web}\nspec: {image: 'a:1', podTemplate: {spec: {nodeSelectr: {}}}}", []string{"spec.podTemplate.spec.nodeSelectr"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := dry(head + tc.body)
			got := findings(&r)
			missing := slices.DeleteFunc(slices.Clone(tc.want), func(want string) bool { return slices.Contains(got, want) })
			if len(missing) > 0 || len(tc.want) == 0 && len(got) > 0 {
				t.Errorf("got %q, %v; want %q", got, r.Err(), tc.want)
			}
			if (r.Object == nil) != (len(tc.want) > 0) || (r.Err() == nil) != (len(tc.want) == 0) {
				t.Errorf("stored: %v, error: %v", r.Object, r.Err())
			}
		})
	}
}

// An update that changes what cannot change is refused, as by admission.
func TestImmutable(t *testing.T) {
	t.Parallel()
	body := head + "metadata: {name: web, namespace: default}\nspec: {image: 'a:1', selector: {a: b}, podTemplate: {metadata: {labels: {a: b}}}}"
	stored := dry(body)
	update := func(change string) string {
		req := request(strings.ReplaceAll(body, "{a: b}", change))
		req.Old = stored.Object
		r := create.Dry(kinds.ModelBox(), req)
		return strings.Join(findings(&r), " ")
	}
	if got := update("{a: b}"); stored.Object == nil || got != "" {
		t.Errorf("%v; the same again: %s", stored.Err(), got)
	}
	if got := update("{a: c}"); got != "spec.selector" {
		t.Errorf("got %q", got)
	}
}

func TestWhatTheAPIServerAssigns(t *testing.T) {
	t.Parallel()
	r := dry(head + "metadata: {generateName: web-, uid: a, resourceVersion: '5', generation: 7}\nspec: {image: 'a:1'}\nstatus: {replicas: 1}")
	if r.Object == nil {
		t.Fatal(r.Err())
	}
	name := r.Object.GetName()
	if len(name) != len("web-")+5 || !strings.HasPrefix(name, "web-") || r.Object.GetNamespace() != "default" {
		t.Errorf("it is %s/%s", r.Object.GetNamespace(), name)
	}
	if r.Object.GetUID() != "" || r.Object.GetResourceVersion() != "" || r.Object.GetGeneration() != 0 || r.Object.Object["status"] != nil {
		t.Errorf("a client set what only the API server sets: %v", r.Object)
	}
}

// handlers are the two webhooks of each kind, by its name.
var handlers = func() map[string][2]webhook.Handler {
	out := map[string][2]webhook.Handler{}
	for _, kind := range all.Kinds {
		out[kind.GVK.Kind] = [2]webhook.Handler{admission.NewDefaulter(kind.Erased), admission.NewValidator(kind.Erased)}
	}
	return out
}()

// served is what the API server does with the schema of a kind's CRD.
type served struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

func newServed(t *testing.T, kind *kinds.Kind) *served {
	t.Helper()
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(kind.CRD().DeepCopy(), internal, nil); err != nil {
		t.Fatal(err)
	}
	openAPI := internal.Spec.Validation.OpenAPIV3Schema
	structural, err := schema.NewStructural(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	return &served{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
}

// create returns what the API server would store with the webhooks of a kind, nil with the
// errors if it refuses the object.
func (s *served) create(t *testing.T, kind *kinds.Kind, object map[string]any) (map[string]any, string) {
	t.Helper()
	delete(object, "status")
	given := &unstructured.Unstructured{Object: object}
	given.SetNamespace("default")
	given.SetCreationTimestamp(metav1.Time{})
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)
	data, err := given.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	object, refusal := admit(t, kind, data)
	if errs := validation.ValidateCustomResource(nil, given.Object, s.validator); len(errs) > 0 {
		return nil, errs.ToAggregate().Error() + refusal
	}
	if refusal == "" {
		if errs, _ := s.rules.Validate(t.Context(), nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget); len(errs) > 0 {
			return nil, errs.ToAggregate().Error()
		}
	}
	return object, refusal
}

// The manifests of users are stored as the API server stores them.
func TestManifestsAreStoredAsByTheAPIServer(t *testing.T) {
	t.Parallel()
	docs, err := manifest.Read([]string{filepath.Join("..", "..", "config", "samples"), "testdata"}, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	checked := map[string]int{}
	for _, doc := range docs {
		kind := kinds.Of(doc.Object.GroupVersionKind().GroupKind())
		if kind == nil {
			continue
		}
		r := create.Dry(kind, create.Request{Object: doc.Object, Namespace: "default"})
		if r.Object == nil {
			t.Errorf("%s:%d: %v", doc.File, doc.Line, r.Err())
			continue
		}
		checked[kind.GVK.Kind]++
		stored, errs := newServed(t, kind).create(t, kind, doc.Object.Object)
		if diff := cmp.Diff(stored, r.Object.Object); diff != "" || errs != "" {
			t.Errorf("%s:%d: %s (-API server +ours):\n%s", doc.File, doc.Line, errs, diff)
		}
	}
	for name := range handlers {
		if checked[name] == 0 {
			t.Errorf("no manifest of kind %s was checked", name)
		}
	}
}

var (
	tries     = flag.Int("tries", 100, "objects of each kind")
	firstSeed = flag.Uint64("first-seed", 0, "seed of the first of them; the others follow")
)

// Objects that are generated from the schema, with values that it does not allow, are refused or
// stored as by the API server.
func TestTheAnswerToAnyObject(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds.All {
		t.Run(kind.GVK.Kind, func(t *testing.T) {
			t.Parallel()
			server, stored := newServed(t, kind), 0
			spec := kind.CRD().Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			for seed := range uint64(*tries) {
				seed += *firstSeed
				source := extremes.New(seed)
				value, _ := source.Value(&spec).(map[string]any)
				if seed%3 > 0 {
					source.Spoil(value, []any{nil, 1.5, true, "", "5", int64(0), int64(-1), []any{}, map[string]any{}})
				}
				object := map[string]any{
					"apiVersion": kind.GVK.GroupVersion().String(), "kind": kind.GVK.Kind, "metadata": map[string]any{"name": "web"}, "spec": value,
				}
				body, err := json.Marshal(object)
				if err != nil || len(body) > 1<<14 {
					continue
				}
				r := create.Dry(kind, create.Request{Object: &unstructured.Unstructured{Object: object}, Namespace: "default", AllowUnknown: true})
				want, refusal := server.create(t, kind, object)
				if (refusal == "") != (r.Object != nil) {
					t.Errorf("seed %d: %.1000s\nAPI server: %.500s\nours: %.500v", seed, body, refusal, r.Err())
				}
				if r.Object != nil && refusal == "" {
					stored++
					if diff := cmp.Diff(want, r.Object.Object); diff != "" {
						t.Errorf("seed %d: (-API server +ours):\n%.2000s", seed, diff)
					}
				}
			}
			t.Logf("%d of %d objects are stored", stored, *tries)
		})
	}
}

// admit returns what admission makes of an object, and its refusal.
func admit(t *testing.T, kind *kinds.Kind, object []byte) (map[string]any, string) {
	t.Helper()
	for _, handler := range handlers[kind.GVK.Kind] {
		resp := handler.Handle(context.Background(), webhook.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Kind: metav1.GroupVersionKind(kind.GVK), Operation: admissionv1.Create, Namespace: "default", Object: runtime.RawExtension{Raw: object},
		}})
		if !resp.Allowed {
			return nil, resp.Result.Message
		}
		if len(resp.Patch) > 0 {
			patch, err := jsonpatch.DecodePatch(resp.Patch)
			if err == nil {
				object, err = patch.Apply(object)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	stored := &unstructured.Unstructured{}
	if err := stored.UnmarshalJSON(object); err != nil {
		t.Fatal(err)
	}
	return stored.Object, ""
}

// An unknown field has the path of the nearest one, and a required one that is meant by it is no
// second error.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	for unknown, nearest := range map[string]string{
		"env: []": "spec.envs", "nodeSelector: {}": "spec.scheduling.nodeSelector", "tolerations: []": "spec.scheduling.tolerations",
		"volumes: []": "spec.podTemplate.spec.volumes", "affinity: {}": "spec.podTemplate.spec.affinity", "containers: []": "spec.podTemplate.spec.containers",
		"volumeMounts: []": "spec.podTemplate.spec.containers[].volumeMounts", "template: {}": "spec.podTemplate", "Image: a": "spec.image",
		"livenessprobe: {}": "spec.livenessProbe", "replica: 1": "spec.replicas", "xyz: 1": "", strings.Repeat("a", 300) + ": 1": "",
		"envs: [{name: A, val: b}]": "spec.envs[].value", "model: {uri: a, sha: b}": "spec.model.sha256", "autoscaling: {maxReplicas: 1, minReplica: 1}": "spec.autoscaling.minReplicas",
	} {
		r := dry(head + "metadata: {name: web}\nspec: {image: 'a:1', " + unknown + "}")
		if len(r.Strict) != 1 {
			t.Fatalf("%.80s: %v", unknown, r.Strict)
		}
		if got, ok := errors.AsType[*create.UnknownField](r.Strict[0]); !ok || got.Nearest != nearest {
			t.Errorf("%.80s: %v, want %q", unknown, r.Strict[0], nearest)
		}
	}
	r := dry(head + "metadata: {name: web}\nspec: {imag: 'a:1'}")
	if got := findings(&r); len(got) != 1 {
		t.Errorf("one cause has %d errors: %q", len(got), got)
	}
}
