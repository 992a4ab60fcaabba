// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
)

// Differences returns the unified diffs of what may not change by an adoption, "" if nothing does:
// the pod template byte for byte, but for the time of a restart, which does not belong to the
// operator, the selectors, the number of pods, and the ports and the type of the Service. desired,
// which has as many children as live, get the API server's defaults.
func Differences(desired, live []client.Object) (out string, err error) {
	for i := range live {
		text, err := render.Diff(render.NameOf(live[i]), essence(live[i]), essence(desired[i]))
		if err != nil {
			return "", err
		}
		out += text
	}
	return out, nil
}

// essence returns what may not change of a child.
func essence(child client.Object) client.Object {
	child = withDefaults(child)
	if s, ok := child.(*corev1.Service); ok {
		return &corev1.Service{Spec: corev1.ServiceSpec{Type: s.Spec.Type, Selector: s.Spec.Selector, Ports: s.Spec.Ports}}
	}
	d := child.(*appsv1.Deployment)
	delete(d.Spec.Template.Annotations, api.AnnotationRestartedAt)
	return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template}}
}

// withDefaults returns a copy of a child with the defaults of the API server.
func withDefaults(obj client.Object) client.Object {
	obj = obj.DeepCopyObject().(client.Object)
	render.SetDefaults(obj)
	return obj
}

// isAllocated reports whether a field of a Service has what the API server allocates to each.
func isAllocated(field string, value any) bool {
	switch field {
	case "clusterIP":
		return value != corev1.ClusterIPNone
	case "ipFamilyPolicy":
		return value == string(corev1.IPFamilyPolicySingleStack)
	}
	return slices.Contains([]string{"clusterIPs", "ipFamilies", "healthCheckNodePort"}, field)
}

// unheld returns a note on each field of the spec of a child, as the operator would leave it, that
// the object does not have: it stays as it is, but a child that is deleted is created again without
// it.
func unheld(desired, after client.Object) (notes []string, err error) {
	built, err := runtime.DefaultUnstructuredConverter.ToUnstructured(withDefaults(desired))
	if err != nil {
		return nil, err
	}
	stays, err := runtime.DefaultUnstructuredConverter.ToUnstructured(after)
	spec, _ := stays["spec"].(map[string]any)
	for _, field := range slices.Sorted(maps.Keys(spec)) {
		value := spec[field]
		known := field == "template" || isAllocated(field, value)
		if !known && !reflect.DeepEqual(value, built["spec"].(map[string]any)[field]) {
			text, _ := json.Marshal(value) // It is a part of a JSON document.
			notes = append(notes, fmt.Sprintf("%s/%s: spec.%s stays %s; the object does not have it, so a %s that is deleted is created again without it",
				strings.ToLower(render.KindOf(after)), after.GetName(), field, text, render.KindOf(after)))
		}
	}
	return notes, err
}

// withNodePorts returns desired children in which the ports of a Service have the node ports that
// the API server chose where the object, which existed before, leaves them open: they stay.
func withNodePorts(desired, live []client.Object) []client.Object {
	out := slices.Clone(desired)
	for i := range out {
		want, ok := out[i].DeepCopyObject().(*corev1.Service)
		have, both := live[i].(*corev1.Service)
		if !ok || !both {
			continue
		}
		for at := range want.Spec.Ports {
			port := &want.Spec.Ports[at]
			same := slices.IndexFunc(have.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == port.Port && p.Protocol == port.Protocol })
			if port.NodePort == 0 && same >= 0 {
				port.NodePort = have.Spec.Ports[same].NodePort
			}
		}
		out[i] = want
	}
	return out
}
