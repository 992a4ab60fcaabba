// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
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
			kind := Kind()
			sent, err := json.Marshal(obj)
			if err != nil {
				t.Fatal(err)
			}
			codec := kind.Codec(obj, nil)
			before := codec.Spec(obj)
			Default(obj)
			if diff := cmp.Diff(test.want, obj.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			ops, err := kinds.Diff(sent, before, codec.Spec(obj))
			if err != nil || len(ops) != test.operations {
				t.Errorf("%v, %v, want %d operations", ops, err, test.operations)
			}
			again := obj.DeepCopy()
			kind.SetDefaults(again, obj)
			if diff := cmp.Diff(obj.Spec, again.Spec); diff != "" {
				t.Errorf("a second time (-first +second):\n%s", diff)
			}
		})
	}
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
		{"the deprecated field", func(o *mtsrev1.Eru) { o.Spec.DeprecatedDeploymentName = "web" }, nil},
		{"the deprecated field with dots", func(o *mtsrev1.Eru) {
			o.Spec.DeploymentName, o.Spec.DeprecatedDeploymentName = "0.web.v1", "0.web.v1"
		}, nil},
		{"two names", func(o *mtsrev1.Eru) { o.Spec.DeprecatedDeploymentName = "api" },
			[]string{"spec.deploymentname: must be the same as deploymentName; remove deploymentname"}},
		{"an invalid name in the deprecated field", func(o *mtsrev1.Eru) {
			o.Spec.DeploymentName, o.Spec.DeprecatedDeploymentName = "Api", "Api"
		}, []string{"spec.deploymentname: lower-case letters"}},
		{"the invalid name of the object in all three fields is one error", func(o *mtsrev1.Eru) {
			o.Name, o.Spec.DeploymentName, o.Spec.DeprecatedDeploymentName = "Web", "Web", "Web"
		}, []string{"metadata.name: must be a valid Service name"}},
		{"two invalid names", func(o *mtsrev1.Eru) { o.Spec.DeploymentName, o.Spec.DeprecatedDeploymentName = "A", "B" },
			[]string{"spec.deploymentName: lower-case", "spec.deploymentname: lower-case", "spec.deploymentname: must be the same"}},
		{"a schedule with a zone", func(o *mtsrev1.Eru) { o.Spec.Schedule = "TZ=UTC 0 0 * * *" },
			[]string{"spec.schedule: give the time zone in timeZone"}},
		{"a schedule that never fires", func(o *mtsrev1.Eru) { o.Spec.Schedule = "0 0 30 2 *" },
			[]string{"spec.schedule: never fires"}},
		{"a time zone in the wrong case", func(o *mtsrev1.Eru) { o.Spec.TimeZone = "asia/shanghai" },
			[]string{`spec.timeZone: write "Asia/Shanghai"`}},
		{"a schedule beyond all bounds", func(o *mtsrev1.Eru) { o.Spec.Schedule = strings.Repeat("0", 1025) },
			[]string{"spec.schedule: may not be more than 1024"}},
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

// In an update of an object without managedFields, deploymentName is derived again if it is
// the default of the stored object.
func TestDefaultWithoutManagedFields(t *testing.T) {
	for _, test := range []struct {
		name                   string
		oldName, oldAlias      string
		sentName, alias, wants string
	}{
		{"the alias changes", "a", "a", "a", "b", "b"},
		{"the alias is removed", "a", "a", "a", "", "web"},
		{"the alias is added", "web", "", "web", "b", "b"},
		{"the name was another one", "c", "", "c", "b", "c"},
		{"the name changes", "a", "a", "c", "a", "c"},
		{"both change", "a", "a", "c", "b", "c"},
		{"the name is removed", "a", "", "", "", "web"},
		{"the object was stored without admission", "", "a", "", "b", "b"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			old := named("web", mtsrev1.EruSpec{DeploymentName: test.oldName, DeprecatedDeploymentName: test.oldAlias})
			obj := named("web", mtsrev1.EruSpec{DeploymentName: test.sentName, DeprecatedDeploymentName: test.alias})
			kind := Kind()
			kind.SetDefaults(obj, old)
			if obj.Spec.DeploymentName != test.wants {
				t.Errorf("deploymentName is %q, want %q", obj.Spec.DeploymentName, test.wants)
			}
			if obj.Spec.DeprecatedDeploymentName != test.alias {
				t.Errorf("the alias became %q", obj.Spec.DeprecatedDeploymentName)
			}
		})
	}
}

// A name that is not the default of the stored object stays, whether or not a client owns it:
// another webhook may have set it.
func TestDefaultKeepsWhatItHasNotDerived(t *testing.T) {
	owned := []metav1.ManagedFieldsEntry{{
		Manager: "kubectl", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:deploymentname":{}}}`),
	}}
	obj := named("web", mtsrev1.EruSpec{DeploymentName: "other", DeprecatedDeploymentName: "a"})
	obj.ManagedFields = owned
	old := named("web", mtsrev1.EruSpec{DeploymentName: "other"})
	kind := Kind()
	if kind.SetDefaults(obj, old); obj.Spec.DeploymentName != "other" {
		t.Errorf("deploymentName became %q", obj.Spec.DeploymentName)
	}
}

// Which Deployment an Eru means is the same with and without admission.
func TestDeploymentNameOrDefault(t *testing.T) {
	names := []string{"", "a", "b"}
	for _, name := range names {
		for _, alias := range names {
			obj := named("web", mtsrev1.EruSpec{DeploymentName: name, DeprecatedDeploymentName: alias})
			before := obj.DeploymentNameOrDefault()
			if Default(obj); obj.Spec.DeploymentName != before || obj.DeploymentNameOrDefault() != before {
				t.Errorf("%q and %q: the Deployment is %q, and with the defaults %q", name, alias, before, obj.Spec.DeploymentName)
			}
		}
	}
}

func TestWarn(t *testing.T) {
	for _, test := range []struct {
		name   string
		now    string
		change func(*mtsrev1.EruSpec)
		want   []string
	}{
		{
			"the next three runs, in the object's zone", "2026-11-21T20:00:00Z",
			func(s *mtsrev1.EruSpec) { s.Enabled, s.TimeZone = true, "Asia/Shanghai" },
			[]string{"spec.schedule: the next restarts are at 2026-11-23T00:00:00+08:00, 2026-11-24T00:00:00+08:00, 2026-11-25T00:00:00+08:00"},
		},
		{
			"disabled", "2026-11-21T00:00:00Z",
			func(s *mtsrev1.EruSpec) { s.TimeZone = "Asia/Kolkata" },
			[]string{"spec.enabled is false: it would run at 2026-11-22T00:00:00+05:30, 2026-11-23T00:00:00+05:30, 2026-11-24T00:00:00+05:30"},
		},
		{
			"a deadline that a change of leader can miss", "2026-11-21T00:00:00Z",
			func(s *mtsrev1.EruSpec) { s.Enabled, s.StartingDeadlineSeconds = true, new(int64(9)) },
			[]string{
				"spec.schedule: the next restarts are at 2026-11-22T00:00:00Z, 2026-11-23T00:00:00Z, 2026-11-24T00:00:00Z",
				"spec.startingDeadlineSeconds: less than 10 s, so a change of the controller's leader can miss a restart",
			},
		},
		{"the last days of the calendar", "9999-12-30T12:00:00Z", func(s *mtsrev1.EruSpec) { s.Enabled = true },
			[]string{"spec.schedule: the next restarts are at 9999-12-31T00:00:00Z"}},
		{
			"the deprecated field", "2026-11-21T00:00:00Z",
			func(s *mtsrev1.EruSpec) { s.DeprecatedDeploymentName = "web" },
			[]string{
				"spec.deploymentname: deprecated; use spec.deploymentName instead",
				"spec.enabled is false: it would run at 2026-11-22T00:00:00Z, 2026-11-23T00:00:00Z, 2026-11-24T00:00:00Z",
			},
		},
		{"an invalid schedule", "2026-11-21T00:00:00Z", func(s *mtsrev1.EruSpec) { s.Schedule = "*" }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			now, err := time.Parse(time.RFC3339, test.now)
			if err != nil {
				t.Fatal(err)
			}
			obj := named("web", complete())
			test.change(&obj.Spec)
			got := Warn(obj, now)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			for _, warning := range got {
				if len(warning) > 120 {
					t.Errorf("%d characters, the API server promises 120: %s", len(warning), warning)
				}
			}
		})
	}
}
