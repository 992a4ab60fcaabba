// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/podtemplate"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

func templated(raw string) *Workload {
	box := &modelv1.ModelBox{}
	box.Name = "box"
	return &Workload{Owner: box, Pods: &podtemplate.Pods{
		Container: corev1.Container{Name: "box", Image: "nginx:1"}, Template: &runtime.RawExtension{Raw: []byte(raw)},
	}}
}

// An int64 of podTemplate is the same number in the child: float64 has no room for all
// of them.
func TestMergingKeepsIntegers(t *testing.T) {
	for _, number := range []int64{0, 1, -1, 1<<53 - 1, 1<<53 + 1, 9007199254740993, math.MaxInt64, math.MinInt64} {
		template, err := templated(fmt.Sprintf(`{"spec":{"terminationGracePeriodSeconds":%d,"securityContext":{"runAsUser":%[1]d},
			"tolerations":[{"key":"a","tolerationSeconds":%[1]d}],"containers":[{"name":"box","securityContext":{"runAsGroup":%[1]d}}]}}`, number)).Template()
		if err != nil {
			t.Errorf("%d: %v", number, err)
			continue
		}
		spec := template.Spec
		for field, got := range map[string]*int64{
			"terminationGracePeriodSeconds": spec.TerminationGracePeriodSeconds, "runAsUser": spec.SecurityContext.RunAsUser,
			"tolerationSeconds": spec.Tolerations[0].TolerationSeconds, "runAsGroup": spec.Containers[0].SecurityContext.RunAsGroup,
		} {
			if *got != number {
				t.Errorf("%s is %d, want %d", field, *got, number)
			}
		}
	}
}

func TestATemplateThatCannotBeMergedIsAnInvalidSpec(t *testing.T) {
	for _, raw := range []string{
		`{"spec":{"terminationGracePeriodSeconds":9223372036854775808}}`,
		`{"spec":{"terminationGracePeriodSeconds":1.5}}`,
		`{"spec":{"containers":{}}}`,
		`{"spec":{"containers":[{"image":"a:1"}]}}`,
		`{"spec":[]}`, `[]`, `{`, `"text"`,
	} {
		_, err := templated(raw).Template()
		if _, ok := errors.AsType[*rules.InvalidSpecError](err); !ok {
			t.Errorf("%s: the error is %v, want a *rules.InvalidSpecError", raw, err)
		}
	}
}
