// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/kinds/all"
)

// paths are those that are registered.
type paths map[string]http.Handler

func (p paths) Register(path string, hook http.Handler) { p[path] = hook }

// A path of another kind is as unknown as any other.
func TestOnlyTheKindsThatAreServedHaveWebhooks(t *testing.T) {
	for kinds, want := range map[string][]string{
		"App,UnitedDeployment": {
			"/", "/mutate-app-huolala-cn-v1-app", "/mutate-extension-k8s-io-v1-uniteddeployment",
			"/validate-app-huolala-cn-v1-app", "/validate-extension-k8s-io-v1-uniteddeployment",
		},
		"-App,-Genericdaemon,-UnitedDeployment,-Eru": {"/", "/mutate-model-github-com-v1-modelbox", "/validate-model-github-com-v1-modelbox"},
	} {
		var o options
		flags, got := flag.NewFlagSet("", flag.ContinueOnError), paths{}
		o.bind(flags)
		if err := flags.Parse([]string{"--kinds=" + kinds}); err != nil {
			t.Fatal(err)
		}
		if register(got, o.kinds.Of(all.WithSizes(noSizes))); !slices.Equal(slices.Sorted(maps.Keys(got)), want) {
			t.Errorf("--kinds=%s registers %v, want %v", kinds, slices.Sorted(maps.Keys(got)), want)
		}
	}
}
