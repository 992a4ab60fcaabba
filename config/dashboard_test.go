// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

const (
	dashboardComponent = "monitoring/dashboard"
	dashboardName      = "modelbox-operator-dashboard"
	dashboardFile      = "modelbox-operator.json"
)

// Grafana's sidecar finds the ConfigMap by its label. It is no part of the install, nor of the
// monitoring, of a cluster without Grafana.
func TestDashboardIsOptional(t *testing.T) {
	objects := with(t, dashboardComponent)
	found := find[*corev1.ConfigMap](t, objects, dashboardName)
	if found.Namespace != system || found.Labels["grafana_dashboard"] != "1" {
		t.Errorf("namespace %q, labels %v", found.Namespace, found.Labels)
	}
	if diff := cmp.Diff([]string{dashboardFile}, slices.Sorted(maps.Keys(found.Data))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	without := slices.Concat(install(t), monitoring(t))
	if len(objects) != len(without)+1 {
		t.Errorf("there are %d objects with the dashboard, and %d without", len(objects), len(without))
	}
	for _, other := range each[*corev1.ConfigMap](without) {
		if other.Name == dashboardName {
			t.Error("the dashboard is there without the component")
		}
	}
}

// "kubectl apply" stores the object in an annotation too.
func TestDashboardCanBeApplied(t *testing.T) {
	for _, o := range with(t, dashboardComponent) {
		if o.meta.GetName() == dashboardName && len(o.json) >= largest {
			t.Errorf("%s has %d bytes", o, len(o.json))
		}
	}
	text := find[*corev1.ConfigMap](t, with(t, dashboardComponent), dashboardName).Data[dashboardFile]
	var dashboard struct {
		Links []struct{ URL string }
	}
	if err := json.Unmarshal([]byte(text), &dashboard); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	for _, link := range dashboard.Links {
		_, file, _ := strings.Cut(link.URL, "/blob/main/")
		if _, err := os.Stat(filepath.Join("..", file)); file == "" || err != nil {
			t.Errorf("it has the link %s: %v", link.URL, err)
		}
	}
}

// A kustomization that changes the namespace changes that of the dashboard too.
func TestDashboardInAnotherNamespace(t *testing.T) {
	objects := kustomization(t, "namespace: ops\nresources: [CONFIG/monitoring]\ncomponents: [CONFIG/"+dashboardComponent+"]\n")
	if got := find[*corev1.ConfigMap](t, objects, dashboardName).Namespace; got != "ops" {
		t.Errorf("it is in %q", got)
	}
}
