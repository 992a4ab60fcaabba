// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// values are what a random template has at a place: values that are valid, and those that a
// merge could treat in another way than the validation.
var values = map[string][]any{
	"metadata":    {"labels", "annotations"},
	"labels":      {"team", "$patch"},
	"annotations": {"note"},
	"spec":        {"containers", "initContainers", "volumes", "nodeSelector", "tolerations", "imagePullSecrets", "priorityClassName", "$retainKeys"},
	"container":   {"name", "image", "command", "args", "env", "envFrom", "ports", "volumeMounts", "tty", "readinessProbe", "resources", "$patch"},
	"item":        {"name", "emptyDir", "value", "key", "operator", "mountPath", "containerPort", "$patch"},
	"text":        {"a", "b", "main", "", "side:1", "A B"},
}

// lists are the fields that are lists of the objects of a place.
var lists = map[string]string{
	"containers": "container", "initContainers": "container", "volumes": "item", "tolerations": "item", "imagePullSecrets": "item",
	"env": "item", "envFrom": "item", "ports": "item", "volumeMounts": "item",
}

func draw(random *rand.Rand, field string) any {
	switch random.IntN(40) {
	case 0:
		return nil
	case 1:
		return []any{}
	case 2:
		return map[string]any{}
	}
	switch field {
	case "tty":
		return random.IntN(2) == 0
	case "containerPort":
		return 80 + random.IntN(2)
	case "command", "args":
		return []any{"a"}
	case "resources", "readinessProbe", "emptyDir":
		return map[string]any{}
	case "operator":
		return "Exists"
	case "mountPath":
		return "/" + values["text"][random.IntN(2)].(string)
	case "nodeSelector":
		return map[string]any{"disk": values["text"][random.IntN(2)]}
	case "image":
		return "side:1"
	}
	if of, ok := lists[field]; ok {
		list := []any{}
		for range random.IntN(3) {
			list = append(list, drawObject(random, of))
		}
		return list
	}
	if _, ok := values[field]; ok {
		return drawObject(random, field)
	}
	return values["text"][random.IntN(len(values["text"]))]
}

func drawObject(random *rand.Rand, of string) any {
	out := map[string]any{}
	for _, key := range values[of] {
		directive := strings.HasPrefix(key.(string), "$")
		if random.IntN(4) == 0 && !directive || directive && random.IntN(60) == 0 || key == "name" {
			out[key.(string)] = draw(random, key.(string))
		}
	}
	return out
}

// What admission has validated is what the controller builds: a template without errors has
// children, which Kubernetes accepts, and one from which none can be built has an error that
// says so. Nulls are the same as fields that are not there.
func TestWhatIsValidatedIsBuilt(t *testing.T) {
	t.Parallel()
	valid, unbuildable := 0, 0
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		tree := map[string]any{"metadata": draw(random, "metadata"), "spec": draw(random, "spec")}
		of := func() *Pods {
			text, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			pods := server("main")
			pods.Template = &runtime.RawExtension{Raw: text}
			return pods
		}
		given := of()
		errs := given.Validate(nil)
		effective, blocking := given.Effective()
		if len(blocking) > 0 != (len(rules.Unbuildable(errs)) > 0) {
			t.Fatalf("%s: validated with %v, built with %v", given.Template.Raw, errs, blocking)
		}
		if len(blocking) > 0 {
			unbuildable++
			continue
		}
		if strings.Contains(string(given.Template.Raw), `"$`) {
			t.Errorf("%s: a directive is not refused", given.Template.Raw)
		}
		main := slices.IndexFunc(effective.Spec.Containers, func(c corev1.Container) bool { return c.Name == "main" })
		if main < 0 || effective.Spec.Containers[main].Image != given.Container.Image || effective.Labels[api.LabelInstance] != given.Instance {
			t.Errorf("%s: the generated fields are not kept: %v", given.Template.Raw, effective)
		}
		if found := append(keys(&effective), kubernetes(&effective)...); len(errs) == 0 && len(found) > 0 {
			t.Errorf("%s: valid, but what is built is not: %v", given.Template.Raw, found)
		}
		takeNoValues(root, tree)
		if without, more := of().Effective(); len(more) > 0 || !cmp.Equal(effective, without) {
			t.Errorf("%s: differs without nulls: %v\n%s", given.Template.Raw, more, cmp.Diff(effective, without))
		}
		if len(errs) == 0 {
			valid++
		}
	}
	if valid < 300 || unbuildable < 300 {
		t.Errorf("%d templates are valid, and %d cannot be built", valid, unbuildable)
	}
}
