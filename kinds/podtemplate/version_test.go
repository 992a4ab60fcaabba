// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// The version that an error names is that of the types it was decoded with, and of the
// rules that are applied to it.
func TestKubernetesIsTheVersionOfTheModules(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	minor := strings.TrimPrefix(Kubernetes, "1.")
	want := map[string]string{"k8s.io/api": "v0." + minor + ".", "k8s.io/kubernetes": "v1." + minor + "."}
	for _, r := range mod.Require {
		if prefix, ok := want[r.Mod.Path]; ok && !strings.HasPrefix(r.Mod.Version, prefix) {
			t.Errorf("%s, where Kubernetes is %s", r.Mod, Kubernetes)
		}
		delete(want, r.Mod.Path)
	}
	if len(want) > 0 {
		t.Errorf("go.mod has none of %v", want)
	}
}
