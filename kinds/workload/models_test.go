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
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

func withModel(t *testing.T, uri, raw string, fetcher models.Fetcher) *Workload {
	t.Helper()
	w := template(t, raw)
	w.Models, w.Fetcher = models.Of(&modelv1.ModelBoxSpec{ModelFileURL: uri}), fetcher
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
		if diff := cmp.Diff(want, init[0]); diff != "" || !models.IsFetcher(&init[0]) {
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
