// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

// The values of the size gpu of server.sizes, now and earlier, as they are in a spec.
const (
	gpuNow = `{resources: {limits: {cpu: "4", memory: 8Gi, example.com/gpu: "1"}, requests: {cpu: "4", memory: 8Gi, example.com/gpu: "1"}}, sharedMemory: 1Gi,
scheduling: {nodeSelector: {pool: a}, tolerations: [{key: gpu, operator: Exists}], runtimeClassName: nvidia}, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}`
	gpuOlder = `{resources: {limits: {cpu: "2"}, requests: {cpu: "1"}}, scheduling: {priorityClassName: a, nodeSelector: {pool: b}}}`
)

func specOfText(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// hasValues compares what a size defines in a stored spec.
func hasValues(t *testing.T, step string, s *server, want string) {
	t.Helper()
	got := s.box().Spec
	part := modelv1.ModelBoxSpec{Resources: got.Resources, Scheduling: got.Scheduling, SharedMemory: got.SharedMemory, Strategy: got.Strategy}
	var wanted modelv1.ModelBoxSpec
	if err := yaml.UnmarshalStrict([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := diff(t, wanted, part); diff != "" {
		t.Errorf("%s (-want +got):\n%s", step, diff)
	}
}

// A changed size reaches an object with the next change of its pod template, whole, and not before.
func TestAChangedSize(t *testing.T) {
	t.Parallel()
	writes := map[string]func(s *server, spec, change string) field.ErrorList{
		"kubectl apply": func(s *server, spec, _ string) field.ErrorList { return s.clientSideApply(specOfText(t, spec)) },
		"kubectl apply --server-side": func(s *server, spec, _ string) field.ErrorList {
			return s.serverSideApply(specOfText(t, spec))
		},
		"kubectl patch": func(s *server, spec, change string) field.ErrorList {
			if s.live == nil {
				return s.update(manifest(specOfText(t, spec)), "kubectl-create")
			}
			return s.mergePatch(`{"spec":`+change+`}`, "kubectl-patch")
		},
		"kubectl replace": func(s *server, spec, _ string) field.ErrorList {
			return s.update(manifest(specOfText(t, spec)), "kubectl-replace")
		},
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{t: t, older: true}
			step := func(what, spec, change, want string) {
				t.Helper()
				if errs := write(s, spec, change); len(errs) > 0 {
					t.Fatalf("%s: %s", what, ruletest.Lines(errs))
				}
				hasValues(t, what, s, want)
			}
			step("created", `{image: a:1, resourceType: gpu}`, ``, gpuOlder)
			s.older = false
			step("scaled", `{image: a:1, resourceType: gpu, replicas: 3}`, `{"replicas":3}`, gpuOlder)
			step("paused", `{image: a:1, resourceType: gpu, paused: true}`, `{"paused":true}`, gpuOlder)
			step("another image", `{image: a:2, resourceType: gpu}`, `{"image":"a:2"}`, gpuNow)
			step("another size", `{image: a:2, resourceType: cpu}`, `{"resourceType":"cpu"}`, `{resources: {requests: {cpu: 500m}}}`)
			step("a preset", `{image: a:2, resourceType: small}`, `{"resourceType":"small"}`,
				`{resources: {limits: {cpu: "1", memory: 2Gi}, requests: {cpu: "1", memory: 2Gi}}}`)
			step("a size again", `{image: a:2, resourceType: gpu}`, `{"resourceType":"gpu"}`, gpuNow)
		})
	}
}

// Under a size, a field has its stored value or that of the size.
func TestValuesUnderASize(t *testing.T) {
	t.Parallel()
	const out = `; remove it, or set resourceType: custom to use other values`
	for name, tc := range map[string]struct{ stored, change, want string }{
		"the size's value": {`{image: a:1, resourceType: gpu}`, `{"resources":{"limits":{"cpu":"4000m"}}}`, ``},
		"the stored value": {`{image: a:1, resourceType: gpu}`, `{"scheduling":{"nodeSelector":{"pool":"b"}}}`, ``},
		"another value": {
			`{image: a:1, resourceType: gpu}`, `{"resources":{"limits":{"cpu":"5"}}}`,
			`spec.resources.limits[cpu]: Invalid value: "5": resourceType gpu defines it as "4"` + out,
		},
		"other scheduling": {
			`{image: a:1, resourceType: cpu}`, `{"scheduling":{"priorityClassName":"high"}}`,
			`spec.scheduling.priorityClassName: Invalid value: "high": resourceType cpu defines it` + out,
		},
		"labels of the pods": {
			`{image: a:1, resourceType: cpu}`, `{"scheduling":{"podLabels":{"queue":"other"}}}`,
			`spec.scheduling.podLabels: Invalid value: {"queue":"other"}: resourceType cpu defines it` + out,
		},
		"what the size does not define": {`{image: a:1, resourceType: cpu}`, `{"sharedMemory":"1Gi","resources":{"limits":{"ephemeral-storage":"1Gi"}}}`, ``},
		"the stored value of another size": {
			`{image: a:1, resourceType: gpu}`, `{"resourceType":"cpu","scheduling":{"nodeSelector":{"pool":"c"}}}`,
			`spec.scheduling.nodeSelector: Invalid value: {"pool":"c"}: resourceType cpu defines it` + out,
		},
		"custom": {`{image: a:1, resourceType: gpu}`, `{"resourceType":"custom","resources":{"limits":{"cpu":"3"}},"scheduling":{"nodeSelector":{"pool":"c"}}}`, ``},
		"custom without resources": {
			`{image: a:1, resourceType: gpu}`, `{"resourceType":"custom"}`,
			`spec.resources: Required value: must be set if resourceType is custom; set it, or set resourceType to small, medium or large`,
		},
		"no such size": {
			`{image: a:1, resourceType: gpu}`, `{"resourceType":"huge"}`,
			`spec.resourceType: Unsupported value: "huge": supported values: "cpu", "gpu", "llm", "none", "small", "medium", "large", "custom"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{t: t, older: true}
			if errs := s.update(manifest(specOfText(t, tc.stored)), "client"); len(errs) > 0 {
				t.Fatal(ruletest.Lines(errs))
			}
			s.older = false
			if got := ruletest.Lines(s.mergePatch(`{"spec":`+tc.change+`}`, "client")); got != tc.want {
				t.Errorf("errors:\n%s\nwant:\n%s", got, tc.want)
			}
		})
	}
}

// A size that the cluster no longer has: what is stored stays, and can be neither removed nor
// changed while the object has the name of that size.
func TestASizeThatIsGone(t *testing.T) {
	t.Parallel()
	after := func(write func(*server) field.ErrorList) (*server, string) {
		s := &server{t: t}
		if errs := s.update(manifest(specOfText(t, `{image: a:1, resourceType: gpu}`)), "client"); len(errs) > 0 {
			t.Fatal(ruletest.Lines(errs))
		}
		s.gone = true
		return s, ruletest.Lines(write(s))
	}
	patch := func(change string) func(*server) field.ErrorList {
		return func(s *server) field.ErrorList { return s.mergePatch(`{"spec":`+change+`}`, "client") }
	}
	for name, write := range map[string]func(*server) field.ErrorList{
		"another image":        patch(`{"image":"a:2"}`),
		"without tolerations":  patch(`{"scheduling":{"tolerations":null}}`),
		"without sharedMemory": patch(`{"sharedMemory":null}`),
		"without the values":   patch(`{"resources":null,"scheduling":null,"sharedMemory":null,"strategy":null}`),
		"the manifest again": func(s *server) field.ErrorList {
			return s.update(manifest(specOfText(t, `{image: a:1, resourceType: gpu, paused: true}`)), "client")
		},
	} {
		s, errs := after(write)
		if errs != "" {
			t.Errorf("%s: %s", name, errs)
		}
		hasValues(t, name, s, gpuNow)
	}
	for change, want := range map[string]string{
		`{"scheduling":{"nodeSelector":{"pool":"other"}}}`: `spec.scheduling.nodeSelector: Invalid value`,
		`{"resources":{"limits":{"cpu":"5"}}}`:             `spec.resources.limits[cpu]: Invalid value`,
		`{"resourceType":"gone"}`:                          `spec.resourceType: Unsupported value: "gone"`,
	} {
		if _, errs := after(patch(change)); !strings.HasPrefix(errs, want) {
			t.Errorf("%s: %s", change, errs)
		}
	}
	s, errs := after(patch(`{"resourceType":"custom","resources":{"requests":{"cpu":"3"}},"scheduling":{"nodeSelector":{"pool":"other"}}}`))
	if errs != "" {
		t.Error(errs)
	}
	hasValues(t, "custom", s, `{resources: {requests: {cpu: "3"}}, scheduling: {nodeSelector: {pool: other}}}`)
}

// An object that was stored without admission gets its values with the next change of its spec.
func TestASizeThatAdmissionHasNotSeen(t *testing.T) {
	t.Parallel()
	for gone, want := range map[bool]string{false: gpuNow, true: `{}`} {
		s := &server{t: t, bare: true}
		if errs := s.update(manifest(specOfText(t, `{image: a:1, resourceType: gpu}`)), "client"); len(errs) > 0 {
			t.Fatal(ruletest.Lines(errs))
		}
		s.bare, s.gone = false, gone
		errs := ruletest.Lines(s.mergePatch(`{"spec":{"paused":true}}`, "client"))
		if missing := strings.HasPrefix(errs, "spec.resourceType: Invalid value"); missing != gone || !gone && errs != "" {
			t.Errorf("gone %t: %s", gone, errs) // Admission itself ratchets: the stored object has this error already.
		}
		hasValues(t, "paused", s, want)
	}
}

// Of an object that was stored without admission, no value is one of its size, unless the cluster
// has the size and the value.
func TestValuesThatAdmissionHasNotSeen(t *testing.T) {
	t.Parallel()
	for value, at := range map[string]string{
		`scheduling: {tolerations: [{operator: Exists}]}`: "spec.scheduling.tolerations", `scheduling: {priorityClassName: high}`: "spec.scheduling.priorityClassName",
		`scheduling: {podLabels: {a: b}}`: "spec.scheduling.podLabels", `resources: {limits: {cpu: "64"}}`: "spec.resources.limits[cpu]",
		`sharedMemory: 8Gi`: "spec.sharedMemory", `strategy: {type: Recreate}`: "spec.strategy.type",
	} {
		for _, gone := range []bool{false, true} {
			for _, change := range []string{`{"paused":true}`, `{"image":"a:2"}`} {
				s := &server{t: t, bare: true}
				if errs := s.update(manifest(specOfText(t, `{image: a:1, resourceType: gpu, `+value+`}`)), "client"); len(errs) > 0 {
					t.Fatal(ruletest.Lines(errs))
				}
				s.bare, s.gone = false, gone
				if errs := ruletest.Lines(s.mergePatch(`{"spec":`+change+`}`, "client")); !strings.Contains(errs, at+": Invalid value") {
					t.Errorf("%s, gone %t, %s: %s", value, gone, change, errs)
				}
			}
		}
	}
}

// The controller builds from the stored values, and does not build an object that has none.
func TestTheControllerDoesNotKnowSizes(t *testing.T) {
	t.Parallel()
	s := &server{t: t}
	if errs := s.update(manifest(specOfText(t, `{image: a:1, resourceType: gpu}`)), "client"); len(errs) > 0 {
		t.Fatal(ruletest.Lines(errs))
	}
	box := s.box()
	modelbox.DefaultStored(box)
	if errs := modelbox.Validate(box); len(errs) > 0 {
		t.Error(ruletest.Lines(errs))
	}
	hasValues(t, "the controller", s, gpuNow)
	for _, text := range []string{`{image: a:1, resourceType: gpu}`, `{image: a:1, resourceType: gpu, resources: {limits: {cpu: 1}}}`} {
		box := &modelv1.ModelBox{}
		box.Name = "web"
		if err := yaml.UnmarshalStrict([]byte(text), &box.Spec); err != nil {
			t.Fatal(err)
		}
		modelbox.DefaultStored(box)
		if got := ruletest.Lines(modelbox.Validate(box)); !strings.Contains(got, `spec.resourceType: Invalid value: "gpu"`) {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// A server: what the object gets of it, and which image it has afterwards.
func TestAServer(t *testing.T) {
	t.Parallel()
	s := &server{t: t, older: true}
	step := func(what string, errs field.ErrorList, image, args string) {
		t.Helper()
		if len(errs) > 0 {
			t.Fatalf("%s: %s", what, ruletest.Lines(errs))
		}
		if got := s.box().Spec; got.Image != image || strings.Join(got.Args, " ") != args {
			t.Errorf("%s: %s %s, want %s %s", what, got.Image, got.Args, image, args)
		}
	}
	step("created", s.clientSideApply(specOfText(t, `{resourceType: llm}`)), "llm:1", "--old")
	s.older = false
	step("scaled", s.clientSideApply(specOfText(t, `{resourceType: llm, replicas: 2}`)), "llm:1", "--old")
	step("the manifest replaced", s.update(manifest(specOfText(t, `{resourceType: llm, replicas: 3}`)), "kubectl-replace"), "llm:1", "--old")
	step("another command", s.mergePatch(`{"spec":{"command":["serve"]}}`, "client"), "llm:1", "--port=9000")
	resize := `{"metadata":{"annotations":{"modelbox-operator.github.io/resize":"7"},"generation":%d},"spec":{"args":null}}`
	step("a resize of an earlier generation", s.mergePatch(fmt.Sprintf(resize, 8), "client"), "llm:1", "--port=9000")
	step("resized", s.mergePatch(fmt.Sprintf(resize, 7), "modelbox-resize"), "llm:2", "--port=9000")
	step("another size", s.mergePatch(`{"spec":{"resourceType":"gpu","image":"a:1"}}`, "client"), "a:1", "")
	s.older = true
	step("the size again", s.mergePatch(`{"spec":{"resourceType":"llm","image":null}}`, "client"), "llm:1", "--old")
	if errs := ruletest.Lines(s.mergePatch(`{"spec":{"resourceType":"cpu","args":["--mine"],"image":null}}`, "client")); !strings.Contains(errs, "resourceType that has a server: llm") {
		t.Error(errs)
	}
}

// Who has set an image is not known after a client has cleared managedFields: it stays.
func TestAnImageWithoutManagedFields(t *testing.T) {
	t.Parallel()
	for spec, image := range map[string]string{`{image: a:1, resourceType: none}`: "a:1", `{resourceType: llm}`: "llm:2"} {
		s := &server{t: t}
		errs := s.update(manifest(specOfText(t, spec)), "client")
		delete(s.live["metadata"].(map[string]any), "managedFields")
		errs = append(errs, s.mergePatch(`{"spec":{"command":["serve"]}}`, "another client")...)
		if got := s.box().Spec; len(errs) > 0 || got.Image != image || len(got.Command) == 0 {
			t.Errorf("%s: %s %s %s", spec, got.Image, got.Command, ruletest.Lines(errs))
		}
	}
}

// The arguments of a server name the model of the object.
func TestTheModelOfAServer(t *testing.T) {
	t.Parallel()
	sizes := modelbox.Sizes{"file": {Image: "a:1", Args: []string{"-m", modelbox.ModelFile, "$(X)"}}, "path": {Image: "a:1", Args: []string{"--model=" + modelbox.ModelPath, "${x}"}}}
	for text, want := range map[string]string{
		`{resourceType: path, model: {uri: "hf://org/name@0123456789012345678901234567890123456789"}}`:                      "--model=/models ${x}",
		`{resourceType: path, model: {uri: "https://example.com/a.bin", mountPath: /m}}`:                                    "--model=/m ${x}",
		`{resourceType: file, modelFileURL: "https://example.com/a.gguf"}`:                                                  "-m /models/a.gguf $(X)",
		`{resourceType: file, model: {uri: "hf://org/name@0123456789012345678901234567890123456789", include: [q4.gguf]}}`:  "-m /models/q4.gguf $(X)",
		`{resourceType: file, model: {uri: "hf://org/name@0123456789012345678901234567890123456789", include: ["*.gguf"]}}`: `spec.model.uri: Invalid value`,
		`{resourceType: file}`: `spec.model: Required value: the server of resourceType file needs a model; set it`,
		`{resourceType: path}`: `spec.model: Required value: the server of resourceType path needs a model; set it`,
	} {
		box := &modelv1.ModelBox{}
		if err := yaml.UnmarshalStrict([]byte(text), &box.Spec); err != nil {
			t.Fatal(err)
		}
		kind := modelbox.KindWithSizes(sizes)
		kind.SetDefaults(box, nil)
		got := ruletest.Lines(kind.Refuse(box, nil))
		if got == "" {
			got = strings.Join(box.Spec.Args, " ")
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
