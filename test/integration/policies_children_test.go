// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubeyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// installCRDs installs the optional kinds until the test ends, and returns them by their resource.
func installCRDs(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	options := envtest.CRDInstallOptions{Paths: []string{filepath.Join(testenv.Root(), "test", "crds")}, MaxTime: time.Minute}
	installed, err := envtest.InstallCRDs(env.Config, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := envtest.UninstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: installed}); err != nil {
			t.Error(err)
		}
		for _, crd := range installed {
			if _, err := env.Kubectl("", "wait", "--for=delete", "--timeout=60s", "crd/"+crd.Name); err != nil {
				t.Error(err)
			}
		}
	})
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range installed {
		crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return !v.Storage })
		out[crd.Spec.Names.Plural] = crd
	}
	return out
}

// The specs of the children around the pods of an App named child, by the path of their resource.
const (
	appTarget     = `{apiVersion: app.huolala.cn/v1, kind: App, name: child}`
	childSelector = `selector: {matchLabels: {app.kubernetes.io/name: app, app.kubernetes.io/instance: child}}`
	budgetSpec    = `{maxUnavailable: 1, unhealthyPodEvictionPolicy: AlwaysAllow, ` + childSelector + `}`
	scalerSpec    = `{minReplicas: 1, maxReplicas: 3, scaleTargetRef: ` + appTarget + `, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}`
	kedaSpec      = `{minReplicaCount: 1, maxReplicaCount: 3, scaleTargetRef: ` + appTarget + `, triggers: [{type: prometheus, metadata: {serverAddress: "http://p:9090", query: up, threshold: "1", ignoreNullValues: "false"}}]}`
	routeSpec     = `{parentRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: public}], hostnames: [a.example.com], rules: [{matches: [{path: {type: PathPrefix, value: /}}], backendRefs: [{group: "", kind: Service, name: child, port: 80, weight: 1}]}]}`
	monitorSpec   = `{podMetricsEndpoints: [{path: /metrics, port: http, interval: 30s}], ` + childSelector + `}`
)

// aroundPods are these resources, with the names of their rows in docs/controller-token.md.
var aroundPods = []struct{ name, path, spec string }{
	{"a PodDisruptionBudget that is a child", "policy/v1/namespaces/" + elsewhere + "/poddisruptionbudgets/", budgetSpec},
	{"a HorizontalPodAutoscaler that is a child", "autoscaling/v2/namespaces/" + elsewhere + "/horizontalpodautoscalers/", scalerSpec},
	{"a ScaledObject that is a child", "keda.sh/v1alpha1/namespaces/" + elsewhere + "/scaledobjects/", kedaSpec},
	{"an HTTPRoute that is a child", "gateway.networking.k8s.io/v1/namespaces/" + elsewhere + "/httproutes/", routeSpec},
	{"a PodMonitor that is a child", "monitoring.coreos.com/v1/namespaces/" + elsewhere + "/podmonitors/", monitorSpec},
}

func targetsAround(crds map[string]*apiextensionsv1.CustomResourceDefinition) (all []target) {
	for _, of := range aroundPods {
		var kind any = &policyv1.PodDisruptionBudget{}
		resource := filepath.Base(of.path)
		if crd := crds[resource]; crd != nil {
			kind = crd
		} else if resource == "horizontalpodautoscalers" {
			kind = &autoscalingv2.HorizontalPodAutoscaler{}
		}
		owned := controlledBy("app.huolala.cn/v1", "App", "child")
		all = append(all, target{of.name, of.path + "child", "", owned + "spec: " + of.spec, kind, nil, nil},
			target{"any other object of these five kinds", of.path + "web", "", "spec: " + of.spec, kind, nil, nil})
	}
	return all
}

// Every resource that the role, or the role of a component, lets the controller write is walked, so that a new one has to be.
func TestEveryResourceOfTheRolesIsWalked(t *testing.T) {
	t.Parallel()
	walked := map[string]bool{"secrets": true, "mutatingwebhookconfigurations": true, "validatingwebhookconfigurations": true}
	for _, target := range append(targets(), targetsAround(nil)...) {
		name := filepath.Base(filepath.Dir(target.path))
		if target.subresource != "" {
			name += "/" + target.subresource
		}
		walked[name] = true
	}
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "*", "*role*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	written := 0
	for _, file := range append(files, filepath.Join(testenv.Root(), "config", "controller", "generated", "role.yaml")) {
		data, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = data.Close() }()
		documents := kubeyaml.NewYAMLOrJSONDecoder(data, 4096)
		for {
			var role rbacv1.ClusterRole
			if documents.Decode(&role) != nil {
				break
			}
			if !strings.HasPrefix(role.Name, "modelbox-controller") {
				continue
			}
			for _, rule := range role.Rules {
				if !slices.ContainsFunc(rule.Verbs, func(verb string) bool {
					return slices.Contains([]string{"create", "patch", "update", "delete", "*"}, verb)
				}) {
					continue
				}
				for _, resource := range rule.Resources {
					written++
					// No request changes finalizers by that path; it is what blockOwnerDeletion needs. Reviews are no objects.
					if !walked[resource] && !strings.HasSuffix(resource, "/finalizers") && !strings.HasSuffix(resource, "reviews") {
						t.Errorf("%s: the controller may %v %s, and no test walks its fields", file, rule.Verbs, resource)
					}
				}
			}
		}
	}
	if written < 20 {
		t.Errorf("%d resources are written, want 20 at least", written)
	}
}

// Children with a forged controller reference that do more than those that the operator makes, by the place in aroundPods.
var forgedSpecs = map[int][]string{
	0: {
		`{maxUnavailable: 0, selector: {}}`, `{maxUnavailable: 0, ` + childSelector + `}`, `{maxUnavailable: 0%, ` + childSelector + `}`, `{` + childSelector + `}`,
		`{minAvailable: 100%, ` + childSelector + `}`, `{minAvailable: 1000000, ` + childSelector + `}`, `{minAvailable: 1, ` + childSelector + `}`,
		`{maxUnavailable: 1, selector: {}}`, `{maxUnavailable: 1}`, `{maxUnavailable: 1, selector: {matchExpressions: [{key: a, operator: DoesNotExist}]}}`,
		`{maxUnavailable: 1, selector: {matchLabels: {app.kubernetes.io/name: app, app.kubernetes.io/instance: other}}}`,
	},
	1: {
		`{maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: child}}`,
		`{maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}`,
		`{maxReplicas: 3, scaleTargetRef: {apiVersion: app.huolala.cn/v1, kind: App, name: other}}`,
		`{maxReplicas: 3, scaleTargetRef: {apiVersion: model.github.com/v1, kind: ModelBox, name: child}}`,
	},
	2: {
		strings.Replace(kedaSpec, appTarget, `{apiVersion: apps/v1, kind: Deployment, name: child}`, 1), strings.Replace(kedaSpec, appTarget, `{name: child}`, 1),
		strings.Replace(kedaSpec, `query: up`, `query: up, authModes: bearer`, 1), strings.Replace(kedaSpec, `type: prometheus`, `type: prometheus, authenticationRef: {name: a}`, 1),
		strings.Replace(kedaSpec, `type: prometheus`, `type: aws-sqs-queue`, 1), strings.Replace(kedaSpec, `minReplicaCount: 1`, `fallback: {failureThreshold: 1, replicas: 9}`, 1),
		strings.Replace(kedaSpec, `minReplicaCount: 1`, `advanced: {scalingModifiers: {formula: a}}`, 1),
	},
	3: {
		strings.Replace(routeSpec, `name: child`, `name: other`, 1), strings.Replace(routeSpec, `name: child`, `name: child, namespace: kube-system`, 1),
		strings.Replace(routeSpec, `kind: Gateway`, `kind: Service`, 1), strings.Replace(routeSpec, `group: "", kind: Service`, `group: a.example.com, kind: Bucket`, 1),
		strings.Replace(routeSpec, `matches:`, `filters: [{type: RequestMirror, requestMirror: {backendRef: {name: other, port: 80}}}], matches:`, 1),
		strings.Replace(routeSpec, `weight: 1`, `weight: 1, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}]}}]`, 1),
	},
	4: {
		strings.Replace(monitorSpec, `{podMetrics`, `{namespaceSelector: {any: true}, podMetrics`, 1), strings.Replace(monitorSpec, `{podMetrics`, `{namespaceSelector: {matchNames: [kube-system]}, podMetrics`, 1),
		strings.Replace(monitorSpec, `path: /metrics`, `basicAuth: {password: {name: a, key: b}}`, 1), strings.Replace(monitorSpec, `path: /metrics`, `bearerTokenSecret: {name: a, key: b}`, 1),
		strings.Replace(monitorSpec, `path: /metrics`, `authorization: {credentials: {name: a, key: b}}`, 1), strings.Replace(monitorSpec, `path: /metrics`, `proxyUrl: "http://a.example.com"`, 1),
		strings.Replace(monitorSpec, `path: /metrics`, `tlsConfig: {ca: {secret: {name: a, key: b}}}`, 1), strings.Replace(monitorSpec, childSelector, `selector: {}`, 1),
	},
}

// The controller's token makes only what the operator makes, whatever it puts into the controller reference.
func TestForgedChildrenAroundThePods(t *testing.T) {
	w := newWalker(t)
	crds, tried := installCRDs(t), 0
	named := func(path, spec string) *target {
		name := filepath.Base(path)
		i := slices.IndexFunc(targetsAround(crds), func(known target) bool { return filepath.Dir(known.path) == filepath.Dir(path) })
		spec = strings.NewReplacer("name: child", "name: "+name, "instance: child", "instance: "+name).Replace(spec)
		return &target{path: path, manifest: controlledBy("app.huolala.cn/v1", "App", name) + "spec: " + spec, of: targetsAround(crds)[i].of}
	}
	for i, of := range aroundPods {
		stored := named(of.path+"stored", of.spec)
		applyTarget(t, stored)
		for _, spec := range append([]string{of.spec}, forgedSpecs[i]...) {
			_, err := w.send(t.Context(), "POST", filepath.Dir(stored.path), "", must(json.Marshal(named(of.path+"forged", spec).object(t))))
			if spec == of.spec && err != nil || spec != of.spec && !isDenied(err) {
				t.Errorf("%s: create %s: %v", of.name, spec, err)
			}
			change := must(json.Marshal([]tree{{"op": "replace", "path": "/spec", "value": named(stored.path, spec).object(t)["spec"]}}))
			_, err = w.send(t.Context(), "PATCH", stored.path, types.JSONPatchType, change)
			if spec == of.spec && err != nil || spec != of.spec && !isDenied(err) {
				t.Errorf("%s: change to %s: %v", of.name, spec, err)
			}
			tried += 2
		}
	}
	t.Logf("%d writes", tried)
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// What the operator makes is allowed, for every block and every form of it.
func TestChildrenAroundThePodsAreAllowed(t *testing.T) {
	w := newWalker(t)
	installCRDs(t)
	port, percent, number := new(intstr.FromInt32(8080)), new(intstr.FromString("50%")), new(intstr.FromInt32(2))
	query := &modelv1.PrometheusQuery{ServerAddress: "http://p:9090", Query: "up", Target: resource.MustParse("1")}
	made := 0
	for _, selector := range []labels.Set{{"app.kubernetes.io/name": "app", "app.kubernetes.io/instance": "made"}, {"app": "adopted"}} {
		for _, blocks := range []*modelv1.Children{
			{Disruption: &modelv1.Disruption{MaxUnavailable: percent}}, {Disruption: &modelv1.Disruption{MinAvailable: number}},
			{Disruption: &modelv1.Disruption{MinAvailable: new(intstr.FromString("100%"))}}, {Autoscaling: &modelv1.Autoscaling{MaxReplicas: 3}},
			{Autoscaling: &modelv1.Autoscaling{MaxReplicas: 3, MinReplicas: new(int32(0)), Prometheus: query}},
			{Route: &modelv1.Route{Hosts: []modelv1.Host{"a.example.com"}, Path: "/v1", Gateway: modelv1.GatewayReference{Name: "public", Namespace: "infra", Listener: "https"}}},
			{Monitoring: &modelv1.Monitoring{Interval: "30s"}}, {Monitoring: &modelv1.Monitoring{Port: port}},
		} {
			o := &children.Object{
				Children: blocks, Replicas: 3, Ports: []modelv1.Port{{Name: "http", Port: 80}}, Owner: appv1.SchemeGroupVersion.WithKind("App"), Selector: selector,
				Meta: metav1.ObjectMeta{Name: "made", Namespace: elsewhere, Labels: map[string]string{"app.kubernetes.io/managed-by": "modelbox-operator"}, OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "app.huolala.cn/v1", Kind: "App", Name: "made", UID: "6a1e2c55-0000-4000-8000-000000000000", Controller: new(true), BlockOwnerDeletion: new(true),
				}}},
			}
			for _, child := range children.Of(o) {
				made++
				body := must(json.Marshal(child))
				kind := child.GetObjectKind().GroupVersionKind()
				i := slices.IndexFunc(aroundPods, func(of struct{ name, path, spec string }) bool {
					return strings.HasPrefix(of.path, kind.GroupVersion().String()+"/")
				})
				if _, err := w.send(t.Context(), "POST", strings.TrimSuffix(aroundPods[i].path, "/"), "", body); err != nil {
					t.Errorf("%v: %v", must(yaml.JSONToYAML(body)), err)
				}
			}
		}
	}
	if made != 16 {
		t.Errorf("%d children were made", made)
	}
}
