// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/randfill"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// The hash of a spec stays the same in later versions: with another one, an object that has returned
// would roll out the spec that has failed. So a field that is not set is not in it.
func TestRolledOutIsStable(t *testing.T) {
	t.Parallel()
	const want = `{"image":"a:1"} 028ac6ea25e7c6418568f05cb5fa9d555f2f6f53e933feae112d311e043533e0`
	for _, spec := range []any{&modelv1.ModelBoxSpec{Image: "a:1"}, &appv1.AppSpec{Image: "a:1"}} {
		if data, hash, err := workload.RolledOut(spec); err != nil || string(data)+" "+hash != want {
			t.Errorf("%T: %s %s, %v", spec, data, hash, err)
		}
	}
}

// A return restores all fields but some, whatever the two specs are.
func TestReturn(t *testing.T) {
	t.Parallel()
	fill := randfill.NewWithSeed(1).NilChance(.3).NumElements(0, 3).MaxDepth(8).Funcs(
		func(raw *runtime.RawExtension, c randfill.Continue) {
			*raw = runtime.RawExtension{Raw: []byte(`{"spec":{"nodeName":"` + []string{"a", "b"}[c.Intn(2)] + `"}}`)}
		})
	for range 200 {
		var before, failed modelv1.ModelBoxSpec
		fill.Fill(&before)
		fill.Fill(&failed)
		before, failed = decoded(t, before), decoded(t, failed)
		data, hash, err := workload.RolledOut(&before)
		if err != nil {
			t.Fatal(err)
		}
		want := before
		want.Replicas, want.Schedules, want.Autoscaling, want.Paused = failed.Replicas, failed.Schedules, failed.Autoscaling, failed.Paused
		want.Route = failed.Route
		want.HoldChanges, want.Windows, want.OnFailedRollout = failed.HoldChanges, failed.Windows, failed.OnFailedRollout
		returned := *failed.DeepCopy()
		if err := workload.Return(&returned, data); err != nil {
			t.Fatal(err)
		}
		if !cmp.Equal(want, returned) {
			t.Fatal(cmp.Diff(want, returned))
		}
		if _, again, err := workload.RolledOut(&returned); err != nil || again != hash {
			t.Fatal("another hash", err)
		}
		returned.Replicas = new(ptr.Deref(returned.Replicas, 0) + 1)
		if _, again, err := workload.RolledOut(&returned); err != nil || again != hash {
			t.Fatal("replicas are a change", err)
		}
	}
}

// decoded returns a spec as it is read from the API server.
func decoded(t *testing.T, spec modelv1.ModelBoxSpec) (out modelv1.ModelBoxSpec) {
	t.Helper()
	data, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
