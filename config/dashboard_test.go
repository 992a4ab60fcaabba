// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const (
	dashboardComponent = "monitoring/dashboard"
	dashboardName      = "modelbox-operator-dashboard"
	dashboardFile      = "modelbox-operator.json"
)

// Grafana's sidecar finds the ConfigMap by its label, in the namespace of a kustomization that uses
// the component.
func TestDashboard(t *testing.T) {
	objects := kustomization(t, "namespace: ops\nresources: [CONFIG/monitoring]\ncomponents: [CONFIG/"+dashboardComponent+"]\n")
	found := find[*corev1.ConfigMap](t, objects, dashboardName)
	if found.Namespace != "ops" || found.Labels["grafana_dashboard"] != "1" || len(found.Data[dashboardFile]) == 0 {
		t.Errorf("namespace %q, labels %v, %d bytes", found.Namespace, found.Labels, len(found.Data[dashboardFile]))
	}
	for _, o := range objects {
		if len(o.json) >= largest { // "kubectl apply" stores the object in an annotation too.
			t.Errorf("%s has %d bytes", o, len(o.json))
		}
	}
}
