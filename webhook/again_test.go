// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
)

// serverEdits are what a ModelBox and an App have in common: merges of spec, some of which are refused.
var serverEdits = []string{
	`image: nginx:1.28`, `replicas: 0`, `replicas: 1`, `replicas: 4`, `replicas: null`, `paused: true`,
	`autoscaling: {maxReplicas: 5}`, `autoscaling: {maxReplicas: 5, minReplicas: 2}`, `autoscaling: null`, `{autoscaling: null, schedules: null}`,
	`autoscaling: {maxReplicas: 5, behavior: {scaleUp: {}, scaleDown: {stabilizationWindowSeconds: 600, selectPolicy: "", policies: null}}}`,
	`autoscaling: {maxReplicas: 5, behavior: {scaleUp: {}, scaleDown: {selectPolicy: Min, policies: [{type: Pods, value: 1, periodSeconds: 60}]}}}`,
	`autoscaling: {minReplicas: 0, maxReplicas: 3, metrics: null, prometheus: {serverAddress: "http://p:9090", query: up, target: "1", cooldownSeconds: 60}}`,
	`autoscaling: {minReplicas: 2, maxReplicas: 3, metrics: null, prometheus: {serverAddress: "http://p:9090", query: up, target: "1", cooldownSeconds: null, idleReplicas: 0, additionalQueries: [{query: a, target: "2"}]}}`,
	`{autoscaling: null, schedules: [{name: day, schedule: "0 8 * * *", replicas: 2}]}`, `schedules: null`,
	`ports: [{port: 80}]`, `ports: [{name: a, port: 80}, {name: b, port: 81, targetPort: 8081}]`, `ports: [{port: 80, nodePort: 30080}]`, `ports: null`,
	`disruption: {minAvailable: 1}`, `disruption: {minAvailable: null, maxUnavailable: 50%}`, `disruption: null`,
	`{restartOnChange: Referenced, windows: [{schedule: "0 2 * * *", duration: 2h}], skipDates: ["2026-12-24"]}`,
	`{restartOnChange: null, windows: null, skipDates: null}`, `{minReadySeconds: 30, progressDeadlineSeconds: 90}`, `minReadySeconds: null`,
	`podTemplate: {spec: {volumes: [{name: v, secret: {secretName: tls}}]}}`, `podTemplate: null`, `podMetadata: {labels: {team: a}}`,
	`envs: [{name: A, valueFrom: {secretKeyRef: {name: db, key: k}}}]`, `service: {sessionAffinity: ClientIP}`, `service: null`,
	`route: {hosts: [a.example.com], gateway: {name: public}}`, `route: {hosts: [a.example.com], gateway: {name: public}, split: [{name: next, weight: 10}]}`, `route: {split: null}`, `monitoring: {interval: 30s}`, `{route: null, monitoring: null}`,
}

// again are the kinds, and merges of their specs.
var again = map[string]struct {
	new   func() client.Object
	edits []string
}{
	"modelbox": {func() client.Object { return &modelv1.ModelBox{} }, append([]string{
		`resourceType: small`, `resourceType: large`, `resourceType: null`, `{resourceType: custom, resources: {limits: {cpu: 3}, requests: null}}`, `resources: null`,
		`serviceType: LoadBalancer`, `serviceType: NodePort`, `serviceType: null`, `defaultProbes: Disabled`, `defaultProbes: null`,
		`livenessProbe: {tcpSocket: null, httpGet: {path: /, port: 80}}`, `livenessProbe: null`, `readinessProbe: null`, `startupProbe: null`, `startupProbe: {periodSeconds: 5}`,
		`strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}`, `strategy: null`, `rollingUpdate: 1`, `rollingUpdate: null`,
		`model: {uri: "hf://a/b@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}`, `model: null`, `modelFileURL: "https://a.example.com/b"`, `modelFileURL: null`,
	}, serverEdits...)},
	"app": {func() client.Object { return &appv1.App{} }, serverEdits},
	"genericdaemon": {func() client.Object { return &mydomainv1beta1.Genericdaemon{} }, []string{
		`image: syslog:2`, `label: ""`, `label: logs=yes`, `rollingUpdate: 2`, `rollingUpdate: null`, `envs: [{name: A, value: b}]`, `envs: null`,
		`{restartOnChange: Referenced, windows: [{schedule: "0 2 * * *", duration: 2h}]}`, `{restartOnChange: null, windows: null}`, `paused: true`,
	}},
	"uniteddeployment": {func() client.Object { return &extensionv1.UnitedDeployment{} }, []string{
		`replicas: 0`, `replicas: 5`, `deploymentName: other`, `schedules: [{name: day, schedule: "0 8 * * *", replicas: 2}]`, `schedules: null`,
	}},
	"eru": {func() client.Object { return &mtsrev1.Eru{} }, []string{
		`enabled: true`, `schedule: "0 3 * * *"`, `schedule: null`, `timeZone: Asia/Shanghai`, `timeZone: null`, `jitterSeconds: 30`, `historyLimit: 0`,
		`deploymentName: other`, `deploymentname: other`, `deploymentname: null`, `windows: [{schedule: "0 2 * * *", duration: 2h}]`, `windows: null`,
	}},
}

// restored is an object as a backup has it: as it was read, without uid and resourceVersion, in another cluster, for which a
// namespace stands.
func restored(obj client.Object, namespace string) client.Object {
	out := obj.DeepCopyObject().(client.Object)
	out.SetUID("")
	out.SetResourceVersion("")
	out.SetNamespace(namespace)
	return out
}

var _ = It("what admission has stored can be created again, by any history", func(ctx SpecContext) {
	histories := 6
	if os.Getenv("MODELBOX_LONG") != "" {
		histories = 100
	}
	elsewhere := newNamespace()
	stored, refused, scaled := 0, 0, 0
	for name, kind := range again {
		for seed := range histories {
			rnd := rand.New(rand.NewPCG(38, uint64(seed)))
			obj, steps := kind.new(), []string{"sample"}
			text, err := yaml.Marshal(sampleObject(name))
			Expect(err).NotTo(HaveOccurred())
			Expect(yaml.Unmarshal(text, obj)).To(Succeed())
			obj.SetNamespace(newNamespace())
			Expect(env.Client.Create(ctx, obj)).To(Succeed())
			for range 10 {
				if name != "genericdaemon" && name != "eru" && rnd.IntN(4) == 0 {
					number := rnd.IntN(9)
					steps = append(steps, fmt.Sprintf("scale %d", number))
					Expect(scale(ctx, obj, number)).To(Succeed())
					scaled++
				} else {
					edit := kind.edits[rnd.IntN(len(kind.edits))]
					steps = append(steps, edit)
					err := merge(ctx, obj, edit, rnd.IntN(2) == 0)
					if apierrors.IsInvalid(err) {
						refused++
						continue
					}
					Expect(err).NotTo(HaveOccurred(), "%s: %s", name, strings.Join(steps, "\n"))
				}
				Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
				Expect(env.Client.Create(ctx, restored(obj, elsewhere), client.DryRunAll)).To(Succeed(), "%s: %s", name, strings.Join(steps, "\n"))
				stored++
			}
		}
	}
	GinkgoWriter.Printf("%d states were created again, %d of them scaled; %d edits were refused\n", stored, scaled, refused)
	Expect(stored).To(BeNumerically(">", 20*histories))
	Expect(scaled).To(BeNumerically(">", 3*histories))
})

// scale sets the number of replicas as an autoscaler and a schedule do.
func scale(ctx context.Context, obj client.Object, number int) error {
	body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, number)
	return env.Client.SubResource("scale").Patch(ctx, obj.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, body),
		client.WithSubResourceBody(&autoscalingv1.Scale{}))
}

// merge changes the spec, as kubectl edit does, or as a manifest that is applied.
func merge(ctx context.Context, obj client.Object, edit string, apply bool) error {
	if !strings.HasPrefix(edit, "{") {
		edit = "{" + edit + "}"
	}
	spec, err := yaml.YAMLToJSON([]byte(edit))
	if err != nil {
		return err
	}
	if apply && !strings.Contains(edit, "null") {
		gvk, err := env.Client.GroupVersionKindFor(obj)
		if err != nil {
			return err
		}
		body := fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},"spec":%s}`, gvk.GroupVersion(), gvk.Kind, obj.GetName(), spec)
		return env.Client.Patch(ctx, obj, client.RawPatch(types.ApplyPatchType, body), client.FieldOwner("person"), client.ForceOwnership)
	}
	return env.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":%s}`, spec)))
}
