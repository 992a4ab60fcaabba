// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
)

// RuleHint is that of what is valid, and likely to be a mistake.
const RuleHint = "Hint"

// modelFlag matches the options of servers that name the directory or the file of a model: --model of vLLM, -m of llama.cpp,
// --model-path of SGLang, --model-repository of Triton, --model_base_path of TensorFlow Serving.
var modelFlag = regexp.MustCompile(`^--?(m|model([-_](path|dir|file|store|repository|base[-_]path))?)$`)

// hints adds what the arguments of a ModelBox with a model name, and no volume has: a directory of the image is possible, and a
// mount path that was mistaken is more likely.
func (c *checker) hints(obj *unstructured.Unstructured) {
	box := &modelv1.ModelBox{}
	err := create.Into(obj, box)
	models := modelsource.Of(&box.Spec)
	if err != nil || len(models) == 0 {
		return
	}
	template, errs := modelbox.Pods(box, modelsource.Fetcher{Image: modelsource.Container}).Effective()
	at := slices.IndexFunc(template.Spec.Containers, func(c corev1.Container) bool { return c.Name == box.Spec.Name })
	if len(errs) > 0 || at < 0 {
		return
	}
	for i := range box.Spec.Args {
		if named := modelPath(box.Spec.Args, i); named != "" && !isMounted(template.Spec.Containers[at].VolumeMounts, named) {
			c.text(fmt.Sprintf("spec.args[%d]: %s is in no volume; %s is mounted at %s", i, named, models[0].At, models[0].MountPath), Note, RuleHint)
		}
	}
}

// modelPath returns the absolute path that an argument names as that of a model, "" if it names none.
func modelPath(args []string, i int) string {
	flag, value, joined := strings.Cut(args[i], "=")
	if !joined && i > 0 {
		flag, value = args[i-1], args[i]
	}
	if !modelFlag.MatchString(flag) || !path.IsAbs(value) || strings.Contains(value, "$(") {
		return ""
	}
	return path.Clean(value)
}

// isMounted reports whether a path is in a volume, or has one below it.
func isMounted(mounts []corev1.VolumeMount, named string) bool {
	return slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool {
		at := path.Clean(m.MountPath) + "/"
		return strings.HasPrefix(named+"/", at) || strings.HasPrefix(at, strings.TrimSuffix(named, "/")+"/")
	})
}
