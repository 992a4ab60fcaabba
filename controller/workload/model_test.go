// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
)

func withModel(t *testing.T, uri, raw string, fetcher modelsource.Fetcher) *Workload {
	t.Helper()
	w := template(t, raw)
	w.Models, w.Fetcher = modelsource.Of(&modelv1.ModelBoxSpec{ModelFileURL: uri}), fetcher
	return w
}

// withModels returns a workload with a model, and with others.
func withModels(t *testing.T, uri string, fetcher modelsource.Fetcher, more ...modelv1.NamedModel) *Workload {
	t.Helper()
	w := withModel(t, uri, "", fetcher)
	w.Models = modelsource.Of(&modelv1.ModelBoxSpec{ModelFileURL: uri, Models: more})
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
	released = modelsource.Fetcher{Image: "controller:1"}
	upgraded = modelsource.Fetcher{Image: "controller:2", Mirrors: []string{"https://a=https://b"}}
)

const uri = "https://models.example.com/bert.tar.zst"

// The container that fetches stays as it is as long as nothing else of the pods changes, and status says
// how it was applied. What the live Deployment has does not matter.
func TestKeepFetcher(t *testing.T) {
	t.Parallel()
	before := withModel(t, uri, "", released)
	applied, err := before.FetcherStatus(deploymentOf(t, before))
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
		if err := w.keepFetcher(desired); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(deploymentOf(t, &want), desired); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		got, err := w.FetcherStatus(desired)
		if err != nil || tc.keeps && !cmp.Equal(got, applied) || !tc.keeps && got != nil && got.Image != upgraded.Image || (got == nil) != (len(w.Models) == 0) {
			t.Errorf("%s: status has %+v, %v", name, got, err)
		}
	}
}

// Pods that fetch nothing have no trace of the fetcher, so that its flags cannot change them.
func TestPodsThatFetchNothingDoNotDependOnTheFetcher(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{"", "pvc://a/b", "oci://a@sha256:" + strings.Repeat("0a", 32)} {
		before, after := deploymentOf(t, withModel(t, uri, "", released)), deploymentOf(t, withModel(t, uri, "", upgraded))
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s:\n%s", uri, diff)
		}
	}
}

// Whatever podTemplate has, fetch-model is the first container and runs what the operator wants.
func TestFetchModelRunsFirst(t *testing.T) {
	t.Parallel()
	want := deploymentOf(t, withModel(t, uri, "", released)).Spec.Template.Spec.InitContainers[0]
	for _, raw := range []string{
		`{}`, `{"spec":{"initContainers":[]}}`, `{"spec":{"initContainers":null}}`,
		`{"spec":{"initContainers":[{"name":"a","image":"a:1"},{"name":"b","image":"b:1","restartPolicy":"Always"}]}}`,
		`{"spec":{"initContainers":[{"name":"a","image":"a:1"},{"name":"fetch-model","command":[],"args":null,"envFrom":[]}]}}`,
	} {
		template, err := withModel(t, uri, raw, released).Template()
		if err != nil {
			t.Fatal(err)
		}
		init := template.Spec.InitContainers
		if diff := cmp.Diff(want, init[0]); diff != "" || !modelsource.IsFetcher(&init[0]) {
			t.Errorf("%s (-want +got):\n%s", raw, diff)
		}
		if others := strings.Count(raw, `"image"`); len(init) != others+1 {
			t.Errorf("%s: %d init containers", raw, len(init))
		}
	}
}

// A claim's volume mostly belongs to root, and fetch-model runs as another user.
func TestTheGroupOfAClaim(t *testing.T) {
	t.Parallel()
	const context = `{"spec":{"securityContext":{`
	for name, tc := range map[string]struct {
		uri, claim, raw string
		want            int64
		policy          bool
	}{
		"a claim":                       {uri: uri, claim: "models", want: 65532, policy: true},
		"with another security context": {uri: uri, claim: "models", raw: context + `"runAsNonRoot":true}}}`, want: 65532, policy: true},
		"with a group of its own":       {uri: uri, claim: "models", raw: context + `"fsGroup":7}}}`, want: 7},
		"as root":                       {uri: uri, claim: "models", raw: context + `"runAsUser":0}}}`},
		"a volume of the pod":           {uri: uri},
		"mounted as it is":              {uri: "pvc://models"},
	} {
		w := withModel(t, tc.uri, tc.raw, released)
		w.Models[0].Claim = tc.claim
		template, err := w.Template()
		if err != nil {
			t.Fatal(err)
		}
		got := template.Spec.SecurityContext
		if got == nil {
			got = &corev1.PodSecurityContext{}
		}
		if ptr.Deref(got.FSGroup, 0) != tc.want || (got.FSGroupChangePolicy != nil) != tc.policy {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
