// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
)

func template(t *testing.T, raw string) *Workload {
	t.Helper()
	box := &modelv1.ModelBox{}
	box.Name = "box"
	w := &Workload{Owner: box, OwnerKind: schema.GroupVersionKind{Kind: "ModelBox"}, Optional: &children.Object{Children: &modelv1.Children{}}, Pods: &Pods{
		AppName: "modelbox", Instance: "box", Container: corev1.Container{Name: "main", Image: "server:1"},
		Reserved: []Reserved{{Field: "image", Instead: "spec.image"}},
	}}
	if raw != "" {
		w.Pods.Template = &runtime.RawExtension{Raw: []byte(raw)}
	}
	return w
}

// An empty value in podTemplate means "not set", for the fields that a strategic merge
// replaces as well.
func TestTemplateKeepsOwnFieldsFromEmptyValues(t *testing.T) {
	for _, raw := range []string{
		`{"spec":{"containers":[{"name":"main","command":[],"args":[],"imagePullPolicy":""}],"imagePullSecrets":[],"volumes":[]}}`,
		`{"spec":{"containers":[{"name":"main","command":null,"args":null,"volumeMounts":[]}],"terminationGracePeriodSeconds":null}}`,
		`{"spec":{"containers":[{"name":"main","tty":true}],"priority":1}}`,
	} {
		w := template(t, raw)
		w.Reserved = append(w.Reserved, Reserved{Field: "command", Either: true}, Reserved{Field: "args", Either: true},
			Reserved{Field: "imagePullPolicy", Either: true})
		w.Container.Command, w.Container.Args, w.Container.ImagePullPolicy = []string{"serve"}, []string{"-v"}, corev1.PullNever
		w.ImagePullSecrets, w.TerminationGracePeriodSeconds = []corev1.LocalObjectReference{{Name: "registry"}}, new(int64(0))
		w.SharedMemory = new(resource.MustParse("2Gi"))
		got, err := w.Template()
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		w.Pods.Template = nil
		generated, err := w.Template()
		if err != nil {
			t.Fatal(err)
		}
		want := generated.Spec
		want.Priority, want.Containers[0].TTY = got.Spec.Priority, got.Spec.Containers[0].TTY
		if diff := cmp.Diff(want, got.Spec, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
	}
}

func templated(raw string) *Workload {
	box := &modelv1.ModelBox{}
	box.Name = "box"
	return &Workload{Owner: box, Optional: &children.Object{Children: &modelv1.Children{}}, Pods: &Pods{
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
		if _, ok := errors.AsType[*InvalidError](err); !ok {
			t.Errorf("%s: the error is %v, want an InvalidError", raw, err)
		}
	}
}

// A RollingUpdate always has both steps, and a Recreate has none.
func TestStrategy(t *testing.T) {
	t.Parallel()
	number := func(n int32) *intstr.IntOrString { return new(intstr.FromInt32(n)) }
	percent := func(s string) *intstr.IntOrString { return new(intstr.FromString(s)) }
	rolling := func(maxSurge, maxUnavailable *intstr.IntOrString) appsv1.DeploymentStrategy {
		return appsv1.DeploymentStrategy{Type: "RollingUpdate", RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: maxSurge, MaxUnavailable: maxUnavailable,
		}}
	}
	recreate := appsv1.DeploymentStrategy{Type: "Recreate"}
	for name, test := range map[string]struct {
		strategy *appsv1.DeploymentStrategy
		rollout  *intstr.IntOrString
		want     appsv1.DeploymentStrategy
	}{
		"neither":                 {nil, nil, appsv1.DeploymentStrategy{}},
		"rollingUpdate":           {nil, percent("50%"), rolling(percent("50%"), percent("50%"))},
		"rollingUpdate as digits": {nil, percent("3"), rolling(number(3), number(3))},
		"the default":             {new(appsv1.DeploymentStrategy{}), percent("25%"), rolling(percent("25%"), percent("25%"))},
		"no steps":                {new(rolling(nil, nil)), percent("25%"), rolling(percent("25%"), percent("25%"))},
		"no rollingUpdate":        {&appsv1.DeploymentStrategy{Type: "RollingUpdate"}, nil, rolling(percent("25%"), percent("25%"))},
		"no surge":                {new(rolling(number(0), number(1))), percent("25%"), rolling(number(0), number(1))},
		"one step":                {new(rolling(nil, number(0))), nil, rolling(percent("25%"), number(0))},
		"the other step":          {new(rolling(percent("0%"), nil)), nil, rolling(percent("0%"), percent("25%"))},
		"no type":                 {&appsv1.DeploymentStrategy{RollingUpdate: rolling(number(2), number(0)).RollingUpdate}, nil, rolling(number(2), number(0))},
		"Recreate":                {&recreate, percent("25%"), recreate},
		"Recreate with a refused rollingUpdate": {
			&appsv1.DeploymentStrategy{Type: "Recreate", RollingUpdate: rolling(number(1), nil).RollingUpdate}, nil, recreate,
		},
	} {
		w := template(t, "")
		w.Strategy, w.Rollout = test.strategy, test.rollout
		if diff := cmp.Diff(test.want, w.strategy()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What was stored as empty while the webhook was away makes the children that it makes
// when it is left out.
func TestEmptyIsNotSet(t *testing.T) {
	t.Parallel()
	without, with := template(t, ""), template(t, "")
	without.Ports = []modelv1.Port{{Port: 80}}
	with.Ports = []modelv1.Port{{Port: 80, TargetPort: new(intstr.FromString("")), AppProtocol: new("")}}
	with.Rollout = new(intstr.FromString(""))
	if diff := cmp.Diff(without.Service(), with.Service()); diff != "" {
		t.Errorf("the Service (-without +with):\n%s", diff)
	}
	want, err := without.Deployment()
	if err != nil {
		t.Fatal(err)
	}
	got, err := with.Deployment()
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("the Deployment (-without +with):\n%s%v", diff, err)
	}
}

// A step that was stored before it was bounded is cut, and the children are built.
func TestStepsAreCut(t *testing.T) {
	t.Parallel()
	w := template(t, "")
	w.Rollout = new(intstr.FromInt32(1<<31 - 1))
	deployment, err := w.Deployment()
	if err != nil {
		t.Fatal(err)
	}
	step := intstr.FromInt32(1<<30 - 1)
	want := &appsv1.RollingUpdateDeployment{MaxSurge: &step, MaxUnavailable: &step}
	if diff := cmp.Diff(want, deployment.Spec.Strategy.RollingUpdate); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
