// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/podtemplate"
)

func template(t *testing.T, raw string) *Workload {
	t.Helper()
	box := &modelv1.ModelBox{}
	box.Name = "box"
	w := &Workload{Owner: box, OwnerKind: schema.GroupVersionKind{Kind: "ModelBox"}, Pods: &podtemplate.Pods{
		AppName: "modelbox", Instance: "box", Container: corev1.Container{Name: "main", Image: "server:1"},
		Reserved: []podtemplate.Reserved{{Field: "image", Instead: "spec.image"}},
	}}
	if raw != "" {
		w.Pods.Template = &runtime.RawExtension{Raw: []byte(raw)}
	}
	return w
}

// In a strategic merge a null deletes; in a pod template it only says nothing, as an empty
// image does.
func TestTemplateKeepsTheMainContainerFromNulls(t *testing.T) {
	for _, raw := range []string{
		"", `{}`, `{"spec":null}`, `{"metadata":null,"spec":{"containers":null}}`, `{"spec":{"containers":[]}}`,
		`{"spec":{"containers":[{"name":"main","image":null}]}}`, `{"spec":{"containers":[{"name":"main","image":""}]}}`,
	} {
		got, err := template(t, raw).Template()
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		containers := got.Spec.Containers
		if len(containers) != 1 || containers[0].Name != "main" || containers[0].Image != "server:1" || len(got.Labels) != 3 {
			t.Errorf("%s: the template is %+v", raw, got)
		}
	}
}

func TestTemplateErrsOnWhatAdmissionRefuses(t *testing.T) {
	for _, raw := range []string{`[]`, `{"spec":{"containers":{}}}`, `{"spec":{"containers":[{"image":"x:1"}]}}`} {
		if _, err := template(t, raw).Template(); err == nil {
			t.Errorf("%s: no error", raw)
		}
	}
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
		w.Reserved = append(w.Reserved, podtemplate.Reserved{Field: "command", Either: true}, podtemplate.Reserved{Field: "args", Either: true},
			podtemplate.Reserved{Field: "imagePullPolicy", Either: true})
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
