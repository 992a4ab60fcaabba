// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

// raw returns a pod template as an object has it.
func raw(t testing.TB, text string) *runtime.RawExtension {
	t.Helper()
	return &runtime.RawExtension{Raw: ruletest.JSON(t, text)}
}

func TestMetadataWithoutEffect(t *testing.T) {
	t.Parallel()
	template := raw(t, `
metadata:
  name: a
  generateName: a
  namespace: a
  selfLink: a
  uid: a
  resourceVersion: "1"
  generation: 1
  creationTimestamp: "2020-01-01T00:00:00Z"
  deletionTimestamp: "2020-01-01T00:00:00Z"
  deletionGracePeriodSeconds: 1
  ownerReferences: [{}]
  finalizers: [a/b]
  managedFields: [{}]
spec: {serviceAccount: a}`)
	pods := web()
	pods.Template = template
	got := pods.Warnings()
	if errs := pods.Validate(nil); len(errs) > 0 || len(got) != 14 {
		t.Errorf("errors %v, warnings %q", errs, got)
	}
	for i, want := range map[int]string{
		0:  `spec.podTemplate.metadata.creationTimestamp: ignored; only labels and annotations are copied to the pods`,
		13: `spec.podTemplate.spec.serviceAccount: deprecated and ignored; use serviceAccountName`,
		12: `spec.podTemplate.metadata.finalizers: deleted pods remain until all finalizers are removed`,
	} {
		if got[i] != want {
			t.Errorf("warning %d is %q, want %q", i, got[i], want)
		}
	}
}

func TestImageWarnings(t *testing.T) {
	t.Parallel()
	template := raw(t, `
spec:
  containers: [{name: main}, {name: a, image: a}, {name: b, image: b:1}]
  initContainers: [{name: c, image: c:1}, {name: d, image: d:latest}, {name: e, image: e, imagePullPolicy: Always}, {name: f, image: f:latest, imagePullPolicy: Never}]`)
	want := []string{
		"spec.podTemplate.spec.containers[1].image: has no tag; use a version tag or imagePullPolicy: IfNotPresent",
		"spec.podTemplate.spec.initContainers[1].image: has tag latest; use a version tag or imagePullPolicy: IfNotPresent",
		"spec.podTemplate.spec.initContainers[2].image: has no tag, so the image can change; use a version tag or a digest",
		"spec.podTemplate.spec.initContainers[3].image: the image of tag latest can change; use a version tag or a digest",
	}
	pods := &Pods{Template: template}
	if diff := cmp.Diff(want, pods.Warnings()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := web().Warnings(); got != nil {
		t.Errorf("no template: %q", got)
	}
	for _, warning := range want {
		if len(warning) > 120 {
			t.Errorf("%q has %d characters, and the API server may cut it after 120", warning, len(warning))
		}
	}
}

// The policy of the main container's image may be in the pod template.
func TestWarningOfTheMainImage(t *testing.T) {
	t.Parallel()
	const (
		unset = "spec.image: has no tag; use a version tag or spec.imagePullPolicy: IfNotPresent"
		set   = "spec.image: has no tag, so the image can change; use a version tag or a digest"
	)
	for name, test := range map[string]struct {
		template string
		policy   corev1.PullPolicy
		want     string
	}{
		"without a policy":                {`{}`, "", unset},
		"without a template":              {`null`, "", unset},
		"a policy":                        {`{}`, "Never", set},
		"a policy in the template":        {`{spec: {containers: [{name: main, imagePullPolicy: Always}]}}`, "", set},
		"that of another container":       {`{spec: {containers: [{name: a, imagePullPolicy: Always}]}}`, "", unset},
		"a template that is not readable": {`[]`, "", unset},
	} {
		main := &Pods{Container: corev1.Container{Name: "main", Image: "a", ImagePullPolicy: test.policy}, Template: raw(t, test.template)}
		if got := strings.Join(ofImage(main), ""); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		main.Container.Image = "a:1"
		if got := strings.Join(ofImage(main), ""); got != "" {
			t.Errorf("%s, and a version: %q", name, got)
		}
	}
}

// ofImage returns the warnings on spec.image.
func ofImage(p *Pods) []string {
	return slices.DeleteFunc(p.Warnings(), func(w string) bool { return !strings.HasPrefix(w, "spec.image:") })
}

func TestHoldWarning(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 1, 0, 0, 0, time.UTC)
	at := func(schedule string, skip ...string) modelv1.Windows {
		return modelv1.Windows{Windows: []modelv1.Window{{Schedule: schedule, Duration: metav1.Duration{Duration: time.Hour}}}, SkipDates: skip}
	}
	for _, test := range []struct {
		hold modelv1.HoldChanges
		spec modelv1.Windows
		same bool
		want string
	}{
		{modelv1.HoldChangesAll, at("0 2 * * *"), false, "this change replaces the pods when the next window opens, at 2026-03-01T02:00:00Z"},
		{modelv1.HoldChangesAll, at("0 2 * * *"), true, ""},
		{modelv1.HoldChangesAll, at("0 1 * * *"), false, ""},
		{modelv1.HoldChangesAll, at("0 0 1 1 *"), false, "this change replaces the pods when the next window opens, at 2027-01-01T00:00:00Z"},
		{modelv1.HoldChangesAll, at("never"), false, ""},
		{modelv1.HoldChangesAll, modelv1.Windows{}, true, "without windows, no change waits"},
		{modelv1.HoldChangesConfiguration, at("0 2 * * *"), false, ""},
		{"", modelv1.Windows{}, false, ""},
	} {
		got := HoldWarning(test.hold, test.spec, now, func() bool { return test.same })
		if test.want == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || got[0] != "spec.holdChanges: "+test.want || len(got[0]) > 120 {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
