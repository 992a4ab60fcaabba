// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"flag"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/modelbox-operator/modelbox-operator/kinds/all"
)

// Each set of kinds is an install, of which make test has each kind alone and all but one: of the whole one it has, unchanged, all but what names a kind that is left out. The
// parts that take most of the time, such as the CRDs, are there where one kind is left out.
func TestInstallsOfSomeKinds(t *testing.T) {
	const parts = "CONFIG/aggregated-roles, CONFIG/controller, CONFIG/webhook"
	wholes := map[string][]object{"CONFIG": install(t), parts: kustomization(t, "resources: ["+parts+"]\n")}
	for set := 1; set < 1<<len(all.Kinds)-1; set++ {
		if n := bits.OnesCount(uint(set)); 1 < n && n < len(all.Kinds)-1 && os.Getenv("MODELBOX_LONG") == "" {
			continue // Neither a kind alone, nor all but one.
		}
		var kept, components []string
		isLeftOut := leftOut{}
		for i, kind := range all.Kinds {
			if set>>i&1 == 1 {
				kept = append(kept, kind.GVK.Kind)
				continue
			}
			isLeftOut[kind.GVK.Group] = true
			components = append(components, "CONFIG/without/"+strings.ToLower(kind.GVK.Kind))
		}
		base := map[bool]string{true: "CONFIG", false: parts}[len(isLeftOut) == 1]
		if set%2 == 0 {
			slices.Reverse(components) // In any order.
		}
		got := kustomization(t, fmt.Sprintf("resources: [%s]\ncomponents: [%s]\n", base, strings.Join(components, ", ")))
		for _, d := range each[*appsv1.Deployment](got) {
			if selected := takeSelection(t, d); !slices.Equal(selected, kept) {
				t.Errorf("%s of an install of %v serves %v", d.Name, kept, selected)
			}
		}
		if diff := cmp.Diff(texts(t, isLeftOut.from(t, wholes[base])), texts(t, got)); diff != "" {
			t.Errorf("an install of %v (-want +got):\n%s", kept, diff)
		}
	}
}

// leftOut are the groups of the kinds that are left out.
type leftOut map[string]bool

// from returns an install without the kinds. The policies name them in expressions, and stay: they have no effect on a
// kind that the cluster does not have, and bound one that it still has.
func (l leftOut) from(t *testing.T, install []object) (out []object) {
	t.Helper()
	gone := map[string]bool{}
	for _, o := range install {
		switch typed := o.meta.(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			typed = typed.DeepCopy()
			typed.Webhooks = slices.DeleteFunc(typed.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool { return l[w.Rules[0].APIGroups[0]] })
			o.meta = typed
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			typed = typed.DeepCopy()
			typed.Webhooks = slices.DeleteFunc(typed.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return l[w.Rules[0].APIGroups[0]] })
			o.meta = typed
		case *admissionregistrationv1.ValidatingAdmissionPolicy:
		default:
			for group := range l {
				gone[o.String()] = gone[o.String()] || strings.Contains(string(o.json), group)
			}
		}
		out = append(out, o)
	}
	return slices.DeleteFunc(out, func(o object) bool {
		binding, ok := o.meta.(*rbacv1.ClusterRoleBinding)
		return gone[o.String()] || ok && gone["ClusterRole /"+binding.RoleRef.Name]
	})
}

// takeSelection removes the flags --kinds from a Deployment, and returns the kinds that the process serves.
func takeSelection(t *testing.T, d *appsv1.Deployment) (kinds []string) {
	t.Helper()
	isOne := func(word string) bool { return strings.HasPrefix(word, "--kinds=") }
	var selection all.Selection
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	selection.AddFlag(flags)
	command := &container(d).Command
	if err := flags.Parse(slices.DeleteFunc(slices.Clone(*command), func(word string) bool { return !isOne(word) })); err != nil {
		t.Error(err)
	}
	*command = slices.DeleteFunc(*command, isOne)
	for _, kind := range selection.Of(all.Kinds) {
		kinds = append(kinds, kind.GVK.Kind)
	}
	return kinds
}

// texts returns objects in YAML by what they are.
func texts(t *testing.T, objects []object) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, o := range objects {
		out[o.String()] = string(encoded(t, o.meta))
	}
	return out
}

// The Makefile selects the same components by the names of the kinds that stay.
func TestKindsOfAMakefile(t *testing.T) {
	for kinds, want := range map[string]string{
		"":             "",
		"ModelBox,app": "components: [CONFIG/without/eru, CONFIG/without/genericdaemon, CONFIG/without/uniteddeployment]\n",
	} {
		got, failed := command(t, os.Getenv("KUBEBUILDER_ASSETS"), nil, "./hack/manifests.sh", "config", "", "", "", "", kinds)
		if failed != "" {
			t.Fatal(failed)
		}
		if diff := cmp.Diff(texts(t, kustomization(t, "resources: [CONFIG]\n"+want)), texts(t, parse(t, got))); diff != "" {
			t.Errorf("KINDS=%s (-want +got):\n%s", kinds, diff)
		}
	}
	_, failed := command(t, os.Getenv("KUBEBUILDER_ASSETS"), nil, "./hack/manifests.sh", "config", "", "", "", "", "ModelBox,Bpp")
	if want := "KINDS has bpp: each must be one of app eru genericdaemon modelbox uniteddeployment"; !strings.Contains(failed, want) {
		t.Errorf("%q, want %q", failed, want)
	}
}
