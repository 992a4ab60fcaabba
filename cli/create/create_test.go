// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/test/extremes"
)

// dry returns what the package answers to a request.
func dry(t *testing.T, kind *kinds.Kind, req create.Request) answer {
	t.Helper()
	resp, err := create.Dry(context.Background(), kind, req)
	if err != nil {
		t.Fatal(err)
	}
	out := answer{Warnings: resp.Warnings}
	if resp.Err != nil {
		out.Status = &resp.Err.ErrStatus
	} else {
		out.Object = stored(resp.Object)
	}
	return out
}

// difference compares the two answers to a request. The next runs of an Eru may change between
// them, and the errors of labels have no order, so the comparison is repeated.
func difference(t *testing.T, kind *kinds.Kind, req create.Request) (answer, string) {
	t.Helper()
	var got answer
	var diff string
	for range 5 {
		got = dry(t, kind, req)
		want, _ := apiServer.create(kind, req)
		if diff = cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(metav1.Status{}, "TypeMeta")); diff == "" {
			break
		}
	}
	return got, diff
}

// Every row of the tables of rules is answered as by the API server, with the rows of all
// kinds tried as objects of each, with every way to treat unknown fields.
func TestTheAnswerIsThatOfTheAPIServer(t *testing.T) {
	rows := harvest(t)
	for _, kind := range kinds.All {
		t.Run(kind.GVK.Kind, func(t *testing.T) {
			refused, unknown := 0, 0
			for i, spec := range rows[kind.GVK.Kind] {
				req := create.Request{Body: object(kind, "web", spec), Namespace: "default", Validation: metav1.FieldValidationStrict}
				if i%7 == 0 {
					req.YAML = true
				}
				got, diff := difference(t, kind, req)
				if diff != "" {
					t.Errorf("%s (-API server +ours):\n%s", req.Body, diff)
				}
				switch {
				case got.Status == nil:
				case got.Status.Code == http.StatusUnprocessableEntity:
					refused++
				case got.Status.Code == http.StatusBadRequest:
					unknown++
					req.Validation = metav1.FieldValidationWarn
					if _, diff := difference(t, kind, req); diff != "" {
						t.Errorf("with warnings: %s (-API server +ours):\n%s", req.Body, diff)
					}
				}
			}
			t.Logf("%d specs: %d refused, %d with unknown fields", len(rows[kind.GVK.Kind]), refused, unknown)
			if refused < 20 {
				t.Errorf("only %d rows are refused", refused)
			}
		})
	}
}

// What TestTheAnswerToAnyObject tries of each kind; make fuzz tries more, from a new seed.
var (
	tries     = flag.Int("tries", 100, "objects of each kind")
	firstSeed = flag.Uint64("first-seed", 0, "seed of the first of them; the others follow")
)

// Objects that are generated from the schema, with values that it does not allow, are
// answered as by the API server.
func TestTheAnswerToAnyObject(t *testing.T) {
	for _, kind := range kinds.All {
		t.Run(kind.GVK.Kind, func(t *testing.T) {
			schema := kind.CRD().Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			for i := range uint64(*tries) {
				seed := *firstSeed + i
				source := extremes.New(seed)
				spec, _ := source.Value(&schema).(map[string]any)
				if seed%3 > 0 {
					source.Spoil(spec, []any{nil, 1.5, 1e3, true, "", "5", int64(0), int64(-1), []any{}, map[string]any{}, map[string]any{"x": int64(1)}})
				}
				body, err := json.Marshal(map[string]any{
					"apiVersion": kind.GVK.GroupVersion().String(), "kind": kind.GVK.Kind,
					"metadata": map[string]any{"name": "web"}, "spec": spec,
				})
				if err != nil || len(body) > 1<<20 {
					continue
				}
				_, diff := difference(t, kind, create.Request{Body: body, Namespace: "default", Validation: metav1.FieldValidationWarn})
				if len(body) < 4<<10 && strings.Contains(diff, "may not be more than") {
					continue // It is measured only with its managedFields.
				}
				if diff != "" {
					t.Errorf("seed %d: %.300s (-API server +ours):\n%.2000s", seed, body, diff)
				}
			}
		})
	}
}

// What is beside the spec is answered as by the API server.
func TestTheAnswerToManifests(t *testing.T) {
	const head = "apiVersion: model.github.com/v1\nkind: ModelBox\n"
	box := kinds.ModelBox()
	for name, body := range map[string]string{
		"valid":                         head + "metadata: {name: web}\nspec: {image: a:1}",
		"no metadata":                   head + "spec: {image: a:1}",
		"no spec":                       head + "metadata: {name: web}",
		"null":                          head + "metadata: {name: web}\nspec: null",
		"a name":                        head + "metadata: {name: A_b}\nspec: {image: a:1}",
		"a long name":                   head + "metadata: {name: " + strings.Repeat("a", 64) + "}\nspec: {image: a:1}",
		"a name that is a number":       head + "metadata: {name: 5}\nspec: {image: a:1}",
		"labels":                        head + "metadata: {name: web, labels: {a b: c}}\nspec: {image: a:1}",
		"labels that are numbers":       head + "metadata: {name: web, labels: {a: 1}}\nspec: {image: a:1}",
		"annotations":                   head + "metadata: {name: web, annotations: {a b: c}}\nspec: {image: a:1}",
		"a finalizer":                   head + "metadata: {name: web, finalizers: [a.b]}\nspec: {image: a:1}",
		"an owner":                      head + "metadata: {name: web, ownerReferences: [{apiVersion: v1}]}\nspec: {image: a:1}",
		"an unknown member of metadata": head + "metadata: {name: web, lables: {a: b}}\nspec: {image: a:1}",
		"an unknown member":             head + "metadata: {name: web}\nspek: {}\nspec: {image: a:1, imag: b}",
		"a duplicate":                   head + "metadata: {name: web}\nspec: {image: a:1, image: b:1}",
		"several duplicates":            head + "metadata: {name: web}\nspec:\n  image: a:1\n  replicas: 1\n  image: b:1\n  replicas: 2\n  x: 1",
		"another namespace":             head + "metadata: {name: web, namespace: other}\nspec: {image: a:1}",
		"the namespace":                 head + "metadata: {name: web, namespace: default}\nspec: {image: a:1}",
		"a status":                      head + "metadata: {name: web}\nspec: {image: a:1}\nstatus: {replicas: -1, x: 1}",
		"system fields":                 head + "metadata: {name: web, uid: a, resourceVersion: '5', generation: 7}\nspec: {image: a:1}",
		"spec is a list":                head + "metadata: {name: web}\nspec: []",
		"metadata is a list":            head + "metadata: []\nspec: {image: a:1}",
		"many errors":                   head + "metadata: {name: web}\nspec: {image: '', replicas: -1, rollingUpdate: 0, ports: [{port: 0}]}",
		"many envs":                     head + "metadata: {name: web}\nspec: {image: 'a:1', envs: [" + strings.Repeat("{name: A},", 1100) + "]}",
		"a large template":              head + "metadata: {name: web}\nspec: {image: 'a:1', podTemplate: {metadata: {annotations: {a: " + strings.Repeat("b", 150_000) + "}}}}",
		"a deep template":               head + "metadata: {name: web}\nspec: {image: 'a:1', podTemplate: " + strings.Repeat("{a: ", 100) + strings.Repeat("b", 5000) + strings.Repeat("}", 100) + "}",
		"envs that repeat":              head + "metadata: {name: web}\nspec: {image: 'a:1', envs: [{name: A}, {name: A}]}",
		"generateName":                  head + "metadata: {generateName: A_}\nspec: {image: a:1}",
	} {
		for _, validation := range []string{metav1.FieldValidationStrict, metav1.FieldValidationWarn, metav1.FieldValidationIgnore} {
			t.Run(name+" "+validation, func(t *testing.T) {
				req := create.Request{Body: []byte(body), YAML: true, Namespace: "default", Validation: validation}
				if _, diff := difference(t, box, req); diff != "" {
					t.Errorf("as YAML (-API server +ours):\n%.3000s", diff)
				}
				data, err := yaml.YAMLToJSON(req.Body)
				if err != nil {
					t.Fatal(err)
				}
				req.Body, req.YAML = data, false
				if _, diff := difference(t, box, req); diff != "" {
					t.Errorf("as JSON (-API server +ours):\n%.3000s", diff)
				}
			})
		}
	}
}

// JSON has duplicates of its own, and errors of syntax.
func TestTheAnswerToJSON(t *testing.T) {
	for _, body := range []string{
		`{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":"web"},"spec":{"image":"a:1","image":"b:1"}}`,
		`{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":"web","name":"web"},"spec":{"image":"a:1"}}`,
		`{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":"web"},"spec":{"image":"a:1","envs":[{"name":"A","Name":"B"}]}}`,
		`{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":"web"},"spec":{"image":"a:1","replicas":1e2}}`,
		`{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":"web"},"spec":{"image":"a:1","replicas":99999999999999999999}}`,
	} {
		for _, validation := range []string{metav1.FieldValidationStrict, metav1.FieldValidationWarn} {
			if _, diff := difference(t, kinds.ModelBox(), create.Request{Body: []byte(body), Namespace: "default", Validation: validation}); diff != "" {
				t.Errorf("%s %s (-API server +ours):\n%s", validation, body, diff)
			}
		}
	}
}

// harvest returns the specs in the sources of the tests, by kind. A spec of one kind is
// tried as one of the others as well.
func harvest(t *testing.T) map[string][]any {
	t.Helper()
	out := map[string][]any{}
	found := specsInTests(t)
	for _, kind := range kinds.All {
		name := kind.GVK.Kind
		for _, from := range found {
			if from.kind == name || known(kind, from.spec) {
				out[name] = append(out[name], from.spec)
			}
		}
		for _, text := range ownRows[name] {
			out[name] = append(out[name], parse(t, text))
		}
	}
	return out
}

// known reports whether a kind has one of the fields of a spec, beside image, which most have.
func known(kind *kinds.Kind, spec map[string]any) bool {
	properties := kind.CRD().Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	for name := range spec {
		if _, ok := properties[name]; ok && name != "image" {
			return true
		}
	}
	return false
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return spec
}

// ownRows are refused specs of the kinds whose rules have few rows elsewhere.
var ownRows = map[string][]string{
	"UnitedDeployment": slices.Concat(
		rows(`{deploymentName: %s, replicas: 1}`, `""`, "A", "a_b", "a..b", "-a", "5", "null", "[]", strings.Repeat("a", 254), "a b", "a.-b"),
		rows(`{deploymentName: a, replicas: %s}`, "-1", "2147483648", "1.5", "'1'", "null", "[]", "true"),
		rows(`%s`, "{}", "{deploymentName: a}", "{replicas: 1}", "{deploymentName: A, replicas: -1}", "{deploymentName: a, replicas: 1, x: 1}")),
	"Eru": slices.Concat(
		rows(`{schedule: %s}`, `""`, `"* * * *"`, `"60 0 * * *"`, `"0 24 * * *"`, `"0 0 30 2 *"`, `"@every 5m"`, `"@reboot"`, `"TZ=UTC 0 0 * * *"`,
			`"0 0 * * * *"`, `"a * * * *"`, `"5-1 * * * *"`, `"*/0 * * * *"`, `",1 * * * *"`, "5", "null", "[]", `"`+strings.Repeat("1,", 600)+`1 * * * *"`),
		rows(`{timeZone: %s}`, "Mars/Base", "europe/berlin", "Local", `""`, "5", "+02:00", "null", "../etc/passwd"),
		rows(`{deploymentName: %s}`, "A", "a_b", `""`, "5", strings.Repeat("a", 254)),
		rows(`{startingDeadlineSeconds: %s, enabled: true}`, "-1", "0", "1.5", "'5'", "9007199254740993"),
		rows(`{jitterSeconds: %s, enabled: true}`, "-1", "100000000", "x"),
		rows(`{historyLimit: %s}`, "-1", "101", "x"),
		rows(`%s`, `{deploymentname: web}`, `{enabled: "true"}`, `{schedule: x, timeZone: y, historyLimit: -1}`)),
	"Genericdaemon": slices.Concat(
		rows(`{image: a:1, label: %s}`, `"a b"`, `"=b"`, `"a="`, `"a=b=c"`, "5", strings.Repeat("a", 400), "null", `"a/b/c"`),
		rows(`{image: a:1, rollingUpdate: %s}`, "0", "0%", "101%", "-1", "1.5", "x", "null", `""`, "1073741824"),
		rows(`{image: %s}`, "A", `""`, "a b", "5", "null", "'a:'")),
	"App": slices.Concat(
		rows(`{image: a:1, replicas: %s}`, "-1", "1073741824", "x", "1.5", "null"),
		rows(`{image: a:1, ports: %s}`, "[{}]", "[{port: 0}]", "[{port: 1}, {port: 1}]", "[{port: 1, nodePort: 70000}]", "[null]", "{}")),
}

func rows(format string, values ...string) []string {
	out := make([]string, 0, len(values))
	for _, value := range values {
		out = append(out, fmt.Sprintf(format, value))
	}
	return out
}
