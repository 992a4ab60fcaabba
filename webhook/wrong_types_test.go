// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/kinds/lenient"
	"github.com/modelbox-operator/modelbox-operator/test/extremes"
)

// boxOf is a ModelBox with the spec of a manifest.
func boxOf(namespace, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "model.github.com/v1", "kind": "ModelBox"}}
	var tree any
	Expect(yaml.Unmarshal([]byte(spec), &tree)).To(Succeed())
	obj.Object["spec"] = tree
	obj.SetNamespace(namespace)
	obj.SetName("box")
	return obj
}

var _ = Describe("values of the wrong type", func() {
	It("are reported with their paths and how to correct them, together with all other errors", func(ctx context.Context) {
		err := env.Client.Create(ctx, boxOf(newNamespace(), `{image: "A B", replicas: four, rollingUpdate: 0.5, paused: "yes", resourceType: custom,
resources: {limits: {cpu: 0.5, memory: true}, requests: {cpu: 1e3}}, ports: [{port: "80"}, {port: 0, nodePort: true}],
envs: [{name: A, value: 5}, {name: "B=C"}], podTemplate: {spec: {hostNetwork: 5, restartPolicy: Never}}}`))
		var status *apierrors.StatusError
		Expect(errors.As(err, &status)).To(BeTrue(), "%v", err)
		var reported []string
		for _, cause := range status.ErrStatus.Details.Causes {
			reported = append(reported, cause.Field+": "+cause.Message)
		}
		Expect(reported).To(ConsistOf(
			HavePrefix(`spec.image: Invalid value: "A B": must be an image reference`),
			`spec.replicas: Invalid value: "four": must be of type int32, not string`,
			`spec.rollingUpdate: Invalid value: 0.5: must be a string or a whole number: write it in quotes ("0.5")`,
			`spec.paused: Invalid value: "yes": must be of type bool, not string`,
			`spec.resources.limits[cpu]: Invalid value: 0.5: must be a string or a whole number: write it in quotes ("0.5")`,
			`spec.resources.limits[memory]: Invalid value: true: must be a string or a whole number: write it in quotes ("true")`,
			`spec.ports[0].port: Invalid value: "80": must be of type int32, not string`,
			`spec.ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive`,
			`spec.ports[1].nodePort: Invalid value: true: must be of type int32, not bool`,
			`spec.envs[0].value: Invalid value: 5: must be of type string, not number: write it in quotes ("5")`,
			HavePrefix(`spec.envs[1].name: Invalid value: "B=C"`),
			`spec.podTemplate.spec.hostNetwork: Invalid value: 5: must be of type bool, not number`,
			HavePrefix(`spec.podTemplate.spec.restartPolicy: Unsupported value: "Never"`),
		))
	})

	It("are corrected one by one where they were stored while the webhooks were away", func(ctx context.Context) {
		box := boxOf(newNamespace(), `{image: "A B", podTemplate: {spec: {hostNetwork: 5, priority: x}}}`)
		withoutWebhooks(ctx, func() error { return env.Client.Create(ctx, box) })
		for _, correction := range []struct {
			value any
			path  []string
		}{
			{false, []string{"spec", "podTemplate", "spec", "hostNetwork"}}, {"a:1", []string{"spec", "image"}}, {int64(1), []string{"spec", "podTemplate", "spec", "priority"}},
		} {
			worse := box.DeepCopy()
			Expect(unstructured.SetNestedField(worse.Object, int64(7), "spec", "podTemplate", "spec", "hostname")).To(Succeed())
			Expect(env.Client.Update(ctx, worse)).To(MatchError(ContainSubstring("hostname")))
			Expect(unstructured.SetNestedField(box.Object, correction.value, correction.path...)).To(Succeed())
			Expect(env.Client.Update(ctx, box)).To(Succeed())
		}
	})

	// Whole numbers can be written in many ways, and null is no value.
	It("are not seen where the schema sees none", func(ctx context.Context) {
		namespace := newNamespace()
		for _, spec := range []string{
			`{image: "a:1", replicas: 1.0, rollingUpdate: 2.0, resourceType: custom, resources: {limits: {cpu: 1.0, memory: 1e9}}}`,
			`{image: "a:1", resourceType: null, resources: null, ports: null, podTemplate: null, rollingUpdate: null, paused: null}`,
			`{image: "a:1", ports: [{port: 80, name: null, nodePort: null, targetPort: null, appProtocol: null}], envs: [{name: A, value: null}]}`,
			`{image: "a:1", podTemplate: {spec: {containers: [{name: side, image: "b:1", resources: {limits: {cpu: 0.5}}}]}}}`,
			`{image: "a:1", envs: [{name: A, value: "x:0.5,"}]}`,
		} {
			Expect(env.Client.Create(ctx, boxOf(namespace, spec), client.DryRunAll)).To(Succeed(), spec)
		}
	})

	It("are none in what the API server accepts by itself", func(ctx context.Context) {
		const tries = 400
		namespace, accepted := newNamespace(), 0
		types := map[string]reflect.Type{
			"ModelBox": reflect.TypeFor[modelv1.ModelBox](), "App": reflect.TypeFor[appv1.App](), "Genericdaemon": reflect.TypeFor[mydomainv1beta1.Genericdaemon](),
		}
		withoutWebhooks(ctx, func() error {
			for kind, typ := range types {
				crd := crdOf(kind)
				schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
				delete(schema.Properties, "podTemplate") // It has no schema.
				for seed := range uint64(tries) {
					source := extremes.New(seed)
					spec, _ := source.Value(&schema).(map[string]any)
					spec["image"] = "a:1"
					if seed%2 == 0 {
						source.Spoil(spec, []any{nil, 1.0, 0.5, 1e3, 1e-7, 1e18, 1e19, true, "", "5", "0.5", int64(0), []any{}, map[string]any{}})
					}
					data, err := json.Marshal(map[string]any{"apiVersion": crd.Spec.Group + "/" + crd.Spec.Versions[0].Name, "kind": kind, "spec": spec})
					if err != nil || len(data) > 1<<20 {
						continue
					}
					obj := &unstructured.Unstructured{}
					Expect(obj.UnmarshalJSON(data)).To(Succeed())
					obj.SetNamespace(namespace)
					obj.SetName("box")
					if env.Client.Create(ctx, obj, client.DryRunAll) != nil {
						continue
					}
					accepted++
					for _, sent := range []any{map[string]any{"spec": spec}, obj.Object} {
						_, errs, err := lenient.Strip([]byte(text(sent)), typ, nil, true)
						Expect(err).NotTo(HaveOccurred())
						// A schema says nothing of the names in a map.
						errs = slices.DeleteFunc(errs, func(err *field.Error) bool { return strings.Contains(err.Field, "[hugepages-") })
						Expect(errs).To(BeEmpty(), "%s", strings.TrimSpace(text(sent)))
					}
				}
			}
			return nil
		})
		GinkgoWriter.Println("accepted", accepted, "of", tries*len(types))
		Expect(accepted).To(BeNumerically(">", 100))
	})
})

var _ = Describe("numbers", func() {
	It("nodePort 0 is automatic, for several ports and beside ClusterIP", func(ctx context.Context) {
		box := boxOf(newNamespace(), `{image: "a:1", serviceType: ClusterIP, ports: [{port: 80, nodePort: 0}, {port: 81, nodePort: 0}]}`)
		withoutWebhooks(ctx, func() error { return env.Client.Create(ctx, box.DeepCopy(), client.DryRunAll) })
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		stored := &modelv1.ModelBox{}
		Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(box), stored)).To(Succeed())
		Expect(stored.Spec.Ports[1].NodePort).To(BeZero())
	})

	It("a rollout's step fits an int32 with the replicas", func(ctx context.Context) {
		namespace := newNamespace()
		for spec, want := range map[string]string{
			`{image: "a:1", rollingUpdate: 1073741823, replicas: 1073741823}`: "",
			`{image: "a:1", rollingUpdate: 1073741824}`:                       "spec.rollingUpdate",
			`{image: "a:1", rollingUpdate: 2147483647}`:                       "spec.rollingUpdate",
			`{image: "a:1", replicas: 1073741824}`:                            "spec.replicas",
			`{image: "a:1", rollingUpdate: "999999999"}`:                      "",
			`{image: "a:1", rollingUpdate: "2147483647"}`:                     "spec.rollingUpdate",
		} {
			create := func() error { return env.Client.Create(ctx, boxOf(namespace, spec), client.DryRunAll) }
			if want == "" {
				Expect(create()).To(Succeed(), spec)
				continue
			}
			Expect(create()).To(MatchError(ContainSubstring(want)), spec)
			withoutWebhooks(ctx, func() error {
				Expect(create()).To(MatchError(ContainSubstring(want)), spec)
				return nil
			})
		}
	})

	It("an empty protocol is TCP, however often it is applied", func(ctx context.Context) {
		namespace := newNamespace()
		const manifest = `{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: box}, spec: {image: "a:1", ports: [{port: 80, protocol: ""}]}}`
		for range 3 {
			kubectlIn(namespace, manifest, "apply", "-f", "-")
		}
		stored := &modelv1.ModelBox{}
		Expect(env.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "box"}, stored)).To(Succeed())
		Expect(stored.Spec.Ports).To(HaveLen(1))
		Expect(stored.Generation).To(BeEquivalentTo(1))
	})
})
