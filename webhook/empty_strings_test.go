// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// ofServers are those of a ModelBox and of an App.
var ofServers = []string{
	`{image: "a:1", disruption: {maxUnavailable: 1}}`,
	`{image: "a:1", disruption: {minAvailable: 1}}`,
	`{image: "a:1", ports: [{port: 80}], route: {hosts: [a.example.com], gateway: {name: a}}, monitoring: {}}`,
	`{image: "a:1", autoscaling: {maxReplicas: 2, behavior: {scaleUp: {}, scaleDown: {}}, metrics: [{type: Object, object: {metric: {name: a},
describedObject: {kind: Service, name: web}, target: {type: Value, value: 1}}}]}}`,
	`{image: "a:1", autoscaling: {maxReplicas: 2, prometheus: {serverAddress: "http://a", query: a, target: 1, additionalQueries: [{query: b, target: 1}]}}}`,
	`{image: "a:1", ports: [{port: 80}], service: {publishNotReadyAddresses: true}}`,
	`{image: "a:1", strategy: {rollingUpdate: {}}}`,
	`{image: "a:1", restartOnChange: Referenced, windows: [{schedule: "@daily", duration: 1h}]}`,
	`{image: "a:1", schedules: [{name: a, schedule: "@daily", replicas: 1}]}`,
	`{image: "a:1", scheduling: {tolerations: [{key: a}]}}`,
	`{image: "a:1", scheduling: {tolerations: [{operator: Exists}]}}`,
	`{image: "a:1", resources: {claims: [{name: c}]}, podTemplate: {spec: {resourceClaims: [{name: c, resourceClaimName: x}]}}}`,
}

// bearers are specs in which each optional text of a schema can be set: for each kind,
// what holds it. A place that is in none of them is made in the first.
var bearers = map[string][]string{
	"ModelBox": append([]string{
		`{image: "a:1", ports: [{port: 80}], resources: {limits: {cpu: "1", memory: 2Gi}, requests: {cpu: "1", memory: 2Gi}},
envs: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], envFrom: [{secretRef: {name: a}}],
livenessProbe: {httpGet: {port: 80}}, readinessProbe: {httpGet: {port: 80}}, startupProbe: {httpGet: {port: 80}}}`,
		`{image: "a:1", ports: [{port: 80}, {port: 81}], envs: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}], envFrom: [{configMapRef: {name: a}}],
livenessProbe: {grpc: {port: 80}}, readinessProbe: {grpc: {port: 80}}, startupProbe: {grpc: {port: 80}}}`,
		`{image: "a:1", ports: [{port: 80}], 
livenessProbe: {tcpSocket: {port: 80}}, readinessProbe: {tcpSocket: {port: 80}}, startupProbe: {tcpSocket: {port: 80}}}`,
		`{image: "a:1", model: {}, modelFileURL: "https://a.example/b"}`,
		`{image: "a:1", models: [{name: a, uri: "https://a.example/b"}]}`,
	}, ofServers...),
	"App": append([]string{
		`{image: "a:1", ports: [{port: 80}, {port: 81}], envs: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}`,
		`{image: "a:1", ports: [{port: 80}], envs: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}], envFrom: [{secretRef: {name: a}}]}`,
	}, ofServers...),
	"Genericdaemon": {
		`{image: "a:1", envFrom: [{secretRef: {name: a}}]}`, `{image: "a:1", envFrom: [{configMapRef: {name: a}}], imagePullSecrets: [{name: a}]}`,
		`{image: "a:1", restartOnChange: Referenced, windows: [{schedule: "@daily", duration: 1h}]}`,
		`{image: "a:1", envs: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}`,
		`{image: "a:1", envs: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}]}`,
		`{image: "a:1", resources: {claims: [{name: c}]}, podTemplate: {spec: {resourceClaims: [{name: c, resourceClaimName: x}]}}}`,
	},
	"UnitedDeployment": {`{deploymentName: web, replicas: 1}`, `{deploymentName: web, replicas: 1, schedules: [{name: a, schedule: "@daily", replicas: 1}]}`},
	"Eru":              {`{enabled: true}`, `{windows: [{schedule: "@daily", duration: 1h}]}`},
}

var _ = Describe("an empty string in an optional field", func() {
	for _, kind := range slices.Sorted(maps.Keys(bearers)) {
		It("means that the field is not set: "+kind, func(ctx context.Context) {
			tried, kept := map[string]bool{}, []string{}
			places := eachEmpty(kind, newNamespace(), func(place string, without, with *unstructured.Unstructured) {
				tried[place] = true
				By(place + " of " + text(without.Object["spec"]))
				Expect(env.Client.Create(ctx, without, client.DryRunAll)).To(Succeed())
				Expect(env.Client.Create(ctx, with, client.DryRunAll)).To(Succeed(), place)
				stored, _ := get(with.Object["spec"], place)
				if stored != "" {
					Expect(text(with.Object["spec"])).To(MatchJSON(text(without.Object["spec"])), place)
					return
				}
				kept = append(kept, place)
				_, filled := get(without.Object["spec"], place)
				Expect(filled).To(BeFalse(), "%s has a default", place)
				Expect(text(put(with.Object["spec"], place, nil))).To(MatchJSON(text(put(without.Object["spec"], place, nil))), place)
			})
			GinkgoWriter.Println(kind, "keeps the empty string in", kept)
			Expect(slices.Sorted(maps.Keys(tried))).To(Equal(places), "each is tried")
		})
	}

	It("is accepted while the webhooks are away, each by itself", func(ctx context.Context) {
		namespace := newNamespace()
		withoutWebhooks(ctx, func() error {
			for _, kind := range slices.Sorted(maps.Keys(bearers)) {
				eachEmpty(kind, namespace, func(place string, _, with *unstructured.Unstructured) {
					Expect(env.Client.Create(ctx, with, client.DryRunAll)).To(Succeed(), kind+" "+place)
				})
			}
			return nil
		})
	})
})

// eachEmpty calls try for each optional text that a spec of a kind can hold and does not set, with the object without it and
// with an empty one, and returns all optional texts of the kind.
func eachEmpty(kind, namespace string, try func(place string, without, with *unstructured.Unstructured)) []string {
	GinkgoHelper()
	crd := crdOf(kind)
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	places := optionalTexts(&schema, "")
	object := func(spec any) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		obj.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
		obj.SetKind(kind)
		obj.SetNamespace(namespace)
		obj.SetName("empty")
		return obj
	}
	for _, bearer := range bearers[kind] {
		var spec any
		Expect(yaml.Unmarshal([]byte(bearer), &spec)).To(Succeed())
		for _, place := range places {
			holder := holderOf(place)
			if in, ok := get(spec, holder); holder != "" && (!ok || in == nil) {
				continue
			}
			if was, set := get(spec, place); set && was != "" {
				continue // Another place may need it.
			}
			try(place, object(clone(spec)), object(put(clone(spec), place, "")))
		}
	}
	return places
}

func crdOf(kind string) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "crd", "bases", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		data, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		crd := &apiextensionsv1.CustomResourceDefinition{}
		Expect(yaml.Unmarshal(data, crd)).To(Succeed())
		if crd.Spec.Names.Kind == kind {
			return crd
		}
	}
	Fail("there is no CRD of " + kind)
	return nil
}

// optionalTexts are the places of a schema, such as ports/0/name, in which a text, or a
// number or text, may be left out, unless it is empty then by the schema's own default.
// A quantity is none: no client can read an empty one.
func optionalTexts(schema *apiextensionsv1.JSONSchemaProps, place string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		at := strings.TrimPrefix(place+"/"+name, "/")
		text := property.Type == "string" || property.XIntOrString && !strings.Contains(property.Pattern, "KMGTPE")
		optional := !slices.Contains(schema.Required, name) && (property.Default == nil || string(property.Default.Raw) != `""`)
		// Rules require these two: the type of a model is that of spec.model, which has an alias, and an image is set by some sizes.
		if text && optional && at != "models/0/uri" && at != "image" {
			out = append(out, at)
		}
		if property.Items != nil {
			property, at = *property.Items.Schema, at+"/0"
		}
		out = append(out, optionalTexts(&property, at)...)
	}
	return out
}

func holderOf(place string) string { return place[:max(strings.LastIndexByte(place, '/'), 0)] }
