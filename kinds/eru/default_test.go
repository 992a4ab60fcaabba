// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
)

func named(name string, spec mtsrev1.EruSpec) *mtsrev1.Eru {
	obj := &mtsrev1.Eru{Spec: spec}
	obj.Name, obj.Namespace = name, "default"
	return obj
}

func complete() mtsrev1.EruSpec {
	return mtsrev1.EruSpec{
		DeploymentName: "web", Schedule: "0 0 * * *", TimeZone: "Etc/UTC",
		StartingDeadlineSeconds: new(int64(600)), HistoryLimit: new(int32(10)),
	}
}

func TestDefault(t *testing.T) {
	typed := mtsrev1.EruSpec{
		DeploymentName: "other.web", Enabled: true, Schedule: "@hourly", TimeZone: "Asia/Shanghai",
		StartingDeadlineSeconds: new(int64(0)), JitterSeconds: 7, HistoryLimit: new(int32(0)),
	}
	unnamed := complete()
	unnamed.DeploymentName = ""
	api := complete()
	api.DeploymentName, api.DeprecatedDeploymentName = "api", "api"
	both := typed
	both.DeprecatedDeploymentName = "api"
	for _, test := range []struct {
		name       string
		in, want   mtsrev1.EruSpec
		object     string
		operations int
	}{
		{"nothing was set", mtsrev1.EruSpec{}, complete(), "web", 5},
		{"everything was set, zeros too", typed, typed, "web", 0},
		{"by generateName, the Deployment stays open", mtsrev1.EruSpec{}, unnamed, "", 4},
		{"the deprecated field is the default", mtsrev1.EruSpec{DeprecatedDeploymentName: "api"}, api, "web", 5},
		{"by generateName as well", mtsrev1.EruSpec{DeprecatedDeploymentName: "api"}, api, "", 5},
		{"but no more than a default", both, both, "web", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			obj := named(test.object, *test.in.DeepCopy())
			before, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			var ops patch.Ops
			Default(obj, nil, &ops)
			if diff := cmp.Diff(test.want, obj.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if ops.Len() != test.operations {
				t.Errorf("%d operations, want %d: %s", ops.Len(), test.operations, ops.JSON())
			}
			if diff := cmp.Diff(obj.Spec, patched(t, before, ops.JSON()).Spec); diff != "" {
				t.Errorf("the patch makes another spec (-default +patched):\n%s", diff)
			}
			ops = patch.Ops{}
			Default(obj, obj.DeepCopy(), &ops)
			if ops.Len() != 0 {
				t.Errorf("a second Default is not silent: %s", ops.JSON())
			}
		})
	}
}

func patched(t *testing.T, doc, ops []byte) *mtsrev1.Eru {
	t.Helper()
	if ops != nil {
		decoded, err := jsonpatch.DecodePatch(ops)
		if err != nil {
			t.Fatal(err)
		}
		if doc, err = decoded.Apply(doc); err != nil {
			t.Fatal(err)
		}
	}
	out := &mtsrev1.Eru{}
	if err := json.Unmarshal(doc, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*mtsrev1.Eru)
		want   []string // "path: part of the sentence"
	}{
		{"the defaults", func(*mtsrev1.Eru) {}, nil},
		{"the bounds", func(o *mtsrev1.Eru) {
			o.Spec.StartingDeadlineSeconds, o.Spec.JitterSeconds, o.Spec.HistoryLimit = new(int64(31622400)), 86400, new(int32(100))
		}, nil},
		{"zeros", func(o *mtsrev1.Eru) {
			o.Spec.StartingDeadlineSeconds, o.Spec.JitterSeconds, o.Spec.HistoryLimit = new(int64(0)), 0, new(int32(0))
		}, nil},
		{"a Deployment with dots", func(o *mtsrev1.Eru) { o.Spec.DeploymentName = "0.web.v1" }, nil},
		{"generateName", func(o *mtsrev1.Eru) { o.Name, o.GenerateName, o.Spec.DeploymentName = "", "web-", "" }, nil},
		{"a name that no Service can have", func(o *mtsrev1.Eru) { o.Name = "0web" },
			[]string{"metadata.name: must be a valid Service name"}},
		{"that name for both is one error", func(o *mtsrev1.Eru) { o.Name, o.Spec.DeploymentName = "Web", "Web" },
			[]string{"metadata.name: must be a valid Service name"}},
		{"64 characters", func(o *mtsrev1.Eru) { o.Name = strings.Repeat("a", 64) },
			[]string{"metadata.name: at most 63 characters"}},
		{"a Deployment in capitals", func(o *mtsrev1.Eru) { o.Spec.DeploymentName = "Web" },
			[]string{"spec.deploymentName: lower-case letters"}},
		{"a Deployment of 254 characters", func(o *mtsrev1.Eru) { o.Spec.DeploymentName = strings.Repeat("a", 254) },
			[]string{"spec.deploymentName: 1 to 253"}},
		{"the deprecated field", func(o *mtsrev1.Eru) { o.Spec.DeprecatedDeploymentName = "web" }, nil},
		{"the deprecated field with dots", func(o *mtsrev1.Eru) {
			o.Spec.DeploymentName, o.Spec.DeprecatedDeploymentName = "0.web.v1", "0.web.v1"
		}, nil},
		{"two names", func(o *mtsrev1.Eru) { o.Spec.DeprecatedDeploymentName = "api" },
			[]string{"spec.deploymentname: must be the same as deploymentName; remove deploymentname"}},
		{"an invalid name in the deprecated field", func(o *mtsrev1.Eru) {
			o.Spec.DeploymentName, o.Spec.DeprecatedDeploymentName = "Api", "Api"
		}, []string{"spec.deploymentname: lower-case letters"}},
		{"one of 254 characters", func(o *mtsrev1.Eru) {
			o.Spec.DeploymentName = strings.Repeat("a", 254)
			o.Spec.DeprecatedDeploymentName = o.Spec.DeploymentName
		}, []string{"spec.deploymentname: 1 to 253"}},
		{"the invalid name of the object in all three fields is one error", func(o *mtsrev1.Eru) {
			o.Name, o.Spec.DeploymentName, o.Spec.DeprecatedDeploymentName = "Web", "Web", "Web"
		}, []string{"metadata.name: must be a valid Service name"}},
		{"two invalid names", func(o *mtsrev1.Eru) { o.Spec.DeploymentName, o.Spec.DeprecatedDeploymentName = "A", "B" },
			[]string{"spec.deploymentName: lower-case", "spec.deploymentname: lower-case", "spec.deploymentname: must be the same"}},
		{"a schedule with a zone", func(o *mtsrev1.Eru) { o.Spec.Schedule = "TZ=UTC 0 0 * * *" },
			[]string{"spec.schedule: give the time zone in timeZone"}},
		{"a schedule that never fires", func(o *mtsrev1.Eru) { o.Spec.Schedule = "0 0 30 2 *" },
			[]string{"spec.schedule: never fires"}},
		{"a schedule beyond all bounds", func(o *mtsrev1.Eru) { o.Spec.Schedule = strings.Repeat("0", 1025) },
			[]string{"spec.schedule: may not be more than 1024"}},
		{"a time zone in the wrong case", func(o *mtsrev1.Eru) { o.Spec.TimeZone = "asia/shanghai" },
			[]string{`spec.timeZone: write "Asia/Shanghai"`}},
		{"the machine's time zone", func(o *mtsrev1.Eru) { o.Spec.TimeZone = "Local" },
			[]string{"spec.timeZone: depends on the machine"}},
		{"a time zone beyond all bounds", func(o *mtsrev1.Eru) { o.Spec.TimeZone = strings.Repeat("a", 256) },
			[]string{"spec.timeZone: may not be more than 255"}},
		{"all at once, in order", func(o *mtsrev1.Eru) {
			o.Name = "a.b"
			o.Spec = mtsrev1.EruSpec{
				DeploymentName: "_", Schedule: "61 * * * *", TimeZone: "Mars/Base",
				StartingDeadlineSeconds: new(int64(-1)), JitterSeconds: 86401, HistoryLimit: new(int32(101)),
			}
		}, []string{
			"metadata.name: must be", "spec.deploymentName: must be", "spec.schedule: 61", "spec.timeZone: not a known time zone",
			"spec.startingDeadlineSeconds: must be between 0 and 31622400, inclusive",
			"spec.jitterSeconds: must be between 0 and 86400, inclusive",
			"spec.historyLimit: must be between 0 and 100, inclusive",
		}},
		{"below the bounds", func(o *mtsrev1.Eru) { o.Spec.JitterSeconds, o.Spec.HistoryLimit = -1, new(int32(-1)) },
			[]string{"spec.jitterSeconds: must be between 0", "spec.historyLimit: must be between 0"}},
		{"a deadline over a year", func(o *mtsrev1.Eru) { o.Spec.StartingDeadlineSeconds = new(int64(31622401)) },
			[]string{"spec.startingDeadlineSeconds: must be between 0 and 31622400, inclusive"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			obj := named("web", complete())
			test.change(obj)
			was := obj.DeepCopy()
			errs := Validate(obj)
			if len(errs) != len(test.want) {
				t.Fatalf("%d errors, want %d: %v", len(errs), len(test.want), errs)
			}
			for i, want := range test.want {
				path, part, _ := strings.Cut(want, ": ")
				if errs[i].Field != path || !strings.Contains(errs[i].Error(), part) {
					t.Errorf("error %d is %q, want it at %s and to say %q", i, errs[i], path, part)
				}
			}
			if diff := cmp.Diff(was, obj); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
}
