// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// boxed returns the workload of a ModelBox with a pod template.
func boxed(raw string) *Workload {
	box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Name: "box"}}
	w := &Workload{Owner: box, OwnerKind: schema.GroupVersionKind{Kind: "ModelBox"}, Optional: &children.Object{Children: &modelv1.Children{}}, Pods: &workload.Pods{
		AppName: "modelbox", Instance: "box", Container: corev1.Container{Name: "main", Image: "server:1"},
	}}
	if raw != "" {
		w.Pods.Template = &runtime.RawExtension{Raw: []byte(raw)}
	}
	return w
}

func withModel(t *testing.T, uri, raw string, fetcher models.Fetcher) *Workload {
	t.Helper()
	w := boxed(raw)
	w.Models, w.Fetcher = models.Of(&modelv1.ModelBoxSpec{ModelFileURL: uri}), fetcher
	return w
}

// withModels returns a workload with a model, and with others.
func withModels(t *testing.T, uri string, fetcher models.Fetcher, more ...modelv1.NamedModel) *Workload {
	t.Helper()
	w := withModel(t, uri, "", fetcher)
	w.Models = models.Of(&modelv1.ModelBoxSpec{ModelFileURL: uri, Models: more})
	return w
}

func deploymentOf(t *testing.T, w *Workload) *appsv1.Deployment {
	t.Helper()
	deployment, err := w.Deployment()
	if err != nil {
		t.Fatal(err)
	}
	return deployment
}

var (
	released = models.Fetcher{Image: "controller:1"}
	upgraded = models.Fetcher{Image: "controller:2", Mirrors: []string{"https://a=https://b"}}
)

const uri = "https://models.example.com/bert.tar.zst"

// The container that fetches stays as it is as long as nothing else of the pods changes, and status
// says how it was applied. What the live Deployment has does not matter.
func TestKeepFetcher(t *testing.T) {
	t.Parallel()
	before := withModel(t, uri, "", released)
	applied, err := FetcherStatus(before, deploymentOf(t, before))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change  func(*Workload)
		without bool
		keeps   bool
	}{
		"nothing":              {keeps: true},
		"replicas":             {change: func(w *Workload) { w.Replicas = new(int32(7)) }, keeps: true},
		"the image":            {change: func(w *Workload) { w.Container.Image = "server:2" }},
		"the model":            {change: func(w *Workload) { w.Models[0].URI += ".gz" }},
		"the volume":           {change: func(w *Workload) { w.Models[0].MountPath = "/m" }},
		"another pod template": {change: func(w *Workload) { *w = *withModel(t, uri, `{"spec":{"priority":1}}`, upgraded) }},
		"without a model":      {change: func(w *Workload) { w.Models = nil }},
		"another model": {change: func(w *Workload) {
			*w = *withModels(t, uri, upgraded, modelv1.NamedModel{Name: "a", Model: modelv1.Model{URI: uri, MountPath: "/a"}})
		}},
		"nothing in status": {without: true},
	} {
		w := withModel(t, uri, "", upgraded)
		if tc.change != nil {
			tc.change(w)
		}
		if !tc.without {
			w.Fetched = applied
		}
		want := *w
		pods := *w.Pods
		if want.Pods = &pods; tc.keeps {
			want.Fetcher = released
		}
		desired := deploymentOf(t, w)
		if err := keepFetcher(w, desired); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(deploymentOf(t, &want), desired); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		got, err := FetcherStatus(w, desired)
		if err != nil || tc.keeps && !cmp.Equal(got, applied) || !tc.keeps && got != nil && got.Image != upgraded.Image || (got == nil) != (len(w.Models) == 0) {
			t.Errorf("%s: status has %+v, %v", name, got, err)
		}
	}
}
