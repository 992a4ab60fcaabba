// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/cli/adopt"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
)

// What becomes of a value of a field that is no default.
const (
	carried   = "carried"   // The object has it.
	noted     = "noted"     // The object does not have it, and a note says so.
	allocated = "allocated" // The API server chooses it for each Service.
	refused   = "refused"   // There is no such object.
)

type fieldRow struct{ field, patch, app, modelBox string }

// Each field of the two specs is decided. A new one of Kubernetes needs a row.
var fieldRows = map[reflect.Type][]fieldRow{
	reflect.TypeFor[appsv1.DeploymentSpec](): {
		{"replicas", `{replicas: 7}`, carried, carried},
		{"selector", `{selector: {matchLabels: {b: c}}, template: {metadata: {labels: {b: c}}}}`, carried, carried},
		{"selector", `{selector: {matchExpressions: [{key: app, operator: Exists}]}}`, refused, refused},
		{"template", `{template: {metadata: {annotations: {a: b}}, spec: {dnsPolicy: Default}}}`, carried, carried}, // TestRandomDeployments has the rest.
		{"strategy", `{strategy: {type: Recreate, rollingUpdate: null}}`, carried, carried},
		{"strategy", `{strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}`, carried, carried},
		{"minReadySeconds", `{minReadySeconds: 0}`, carried, carried},
		{"minReadySeconds", `{minReadySeconds: 3}`, carried, carried},
		{"minReadySeconds", `{minReadySeconds: 700, progressDeadlineSeconds: 701}`, carried, carried},
		{"minReadySeconds", `{minReadySeconds: 700, progressDeadlineSeconds: 86401}`, noted, noted},
		{"revisionHistoryLimit", `{revisionHistoryLimit: 0}`, carried, carried},
		{"revisionHistoryLimit", `{revisionHistoryLimit: 1001}`, noted, noted},
		{"paused", `{paused: true}`, noted, noted},
		{"progressDeadlineSeconds", `{progressDeadlineSeconds: 86400}`, carried, carried},
		{"progressDeadlineSeconds", `{progressDeadlineSeconds: 86401}`, noted, noted},
		{"progressDeadlineSeconds", `{progressDeadlineSeconds: 3}`, carried, noted},
	},
	reflect.TypeFor[corev1.ServiceSpec](): {
		{"ports", `{ports: [{name: a, port: 81, targetPort: 82, nodePort: 30081, protocol: UDP, appProtocol: http}]}`, carried, carried},
		{"ports", `{ports: null}`, refused, refused},
		{"selector", `{selector: {b: c}}`, refused, refused},
		{"clusterIP", `{clusterIP: 10.0.0.9}`, allocated, allocated},
		{"clusterIP", headless, noted, noted},
		{"clusterIPs", `{clusterIPs: [10.0.0.9]}`, allocated, allocated},
		{"type", `{type: ClusterIP, ports: [{port: 80, targetPort: http}]}`, carried, carried},
		{"type", `{type: LoadBalancer}`, refused, carried},
		{"type", `{type: ExternalName}`, refused, refused},
		{"externalIPs", `{externalIPs: [192.0.2.1]}`, noted, noted},
		{"sessionAffinity", `{sessionAffinity: ClientIP}`, carried, carried},
		{"sessionAffinityConfig", `{sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}}`, noted, noted},
		{"loadBalancerIP", `{type: LoadBalancer, loadBalancerIP: 192.0.2.1}`, refused, noted},
		{"loadBalancerSourceRanges", `{type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.0/8]}`, refused, carried},
		{"loadBalancerSourceRanges", `{type: LoadBalancer, loadBalancerSourceRanges: [` + strings.Repeat("10.0.0.0/8, ", 65) + `]}`, refused, noted},
		{"externalName", `{externalName: example.com}`, noted, noted},
		{"externalTrafficPolicy", `{externalTrafficPolicy: Local}`, carried, carried},
		{"externalTrafficPolicy", `{type: ClusterIP, ports: [{port: 80, targetPort: http}], externalIPs: [192.0.2.1], externalTrafficPolicy: Local}`, noted, noted},
		{"healthCheckNodePort", `{type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 30090}`, refused, allocated},
		{"publishNotReadyAddresses", `{publishNotReadyAddresses: true}`, carried, carried},
		{"ipFamilies", `{ipFamilies: [IPv6]}`, allocated, allocated},
		{"ipFamilyPolicy", `{ipFamilyPolicy: SingleStack}`, allocated, allocated},
		{"ipFamilyPolicy", `{ipFamilyPolicy: PreferDualStack}`, noted, noted},
		{"allocateLoadBalancerNodePorts", `{type: LoadBalancer, allocateLoadBalancerNodePorts: false}`, refused, noted},
		{"loadBalancerClass", `{type: LoadBalancer, loadBalancerClass: example.com/fast}`, refused, carried},
		{"internalTrafficPolicy", `{internalTrafficPolicy: Local}`, carried, carried},
		{"trafficDistribution", `{trafficDistribution: PreferSameZone}`, carried, carried},
	},
}

const headless = `{type: ClusterIP, clusterIP: None, ports: [{port: 80, targetPort: http}]}`

// The object has each field that its kind has of a Deployment and a Service, and a note says what it does
// not have.
func TestFields(t *testing.T) {
	t.Parallel()
	for spec, rows := range fieldRows {
		for field := range spec.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !slices.ContainsFunc(rows, func(row fieldRow) bool { return row.field == name }) {
				t.Errorf("%s.%s: decide what becomes of it, and add a row", spec.Name(), name)
			}
		}
		for _, row := range rows {
			for kind, want := range map[*kinds.Kind]string{appKind: row.app, kinds.ModelBox(): row.modelBox} {
				if got := becomes(t, kind, spec.Name() == "ServiceSpec", row); got != want {
					t.Errorf("%s: %s is %s, not %s", kind.GVK.Kind, row.patch, got, want)
				}
			}
		}
	}
}

// becomes returns what becomes of the field of a row.
func becomes(t *testing.T, kind *kinds.Kind, ofService bool, row fieldRow) string {
	t.Helper()
	d, s := deployment(t, web), service(t, webService)
	delete(d.Spec.Template.Annotations, api.AnnotationRestartedAt) // It is not carried.
	live, at := client.Object(d), 0
	if ofService {
		live, at = s, 1
	}
	patched(t, live, row.patch)
	children, object, err := built(kind, d, s)
	if !ofService {
		children, object, err = built(kind, d, nil)
	}
	if err == nil {
		err = admitted(kind, object)
	}
	if err != nil {
		return refused
	}
	notes, err := adopt.Unheld(children[at], live)
	render.SetDefaults(children[at])
	isNoted := slices.ContainsFunc(notes, func(note string) bool { return strings.Contains(note, ": spec."+row.field+" stays ") })
	switch isSame := reflect.DeepEqual(valueOf(t, children[at], row.field), valueOf(t, live, row.field)); {
	case err != nil || isSame && isNoted:
		t.Fatalf("%s: %v: %v", row.patch, err, notes)
	case isSame:
		return carried
	case isNoted:
		return noted
	}
	return allocated
}

// patched merges a patch of its spec into a live object, and sets the defaults.
func patched(t *testing.T, live client.Object, patch string) {
	t.Helper()
	change, err := yaml.YAMLToJSON([]byte("spec: " + patch))
	if err != nil {
		t.Fatal(err)
	}
	now, err := yaml.Marshal(live)
	if err == nil {
		now, err = yaml.YAMLToJSON(now)
	}
	if err == nil {
		now, err = jsonpatch.MergePatch(now, change)
	}
	if err != nil {
		t.Fatal(err)
	}
	into := reflect.ValueOf(live).Elem()
	into.SetZero()
	if err := yaml.UnmarshalStrict(now, live); err != nil {
		t.Fatal(err)
	}
	render.SetDefaults(live)
}

func valueOf(t *testing.T, obj client.Object, field string) any {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := unstructured.NestedFieldNoCopy(content, "spec", field)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
