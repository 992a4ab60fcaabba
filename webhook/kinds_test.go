// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// sample returns the manifest of a kind in config/samples, unchanged. It can have other objects
// before that of the kind.
func sample(kind string) string {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "samples", "*_"+kind+".yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).To(HaveLen(1))
	manifest, err := os.ReadFile(files[0])
	Expect(err).NotTo(HaveOccurred())
	return string(manifest)
}

// sampleObject returns the object of the kind in its sample.
func sampleObject(kind string) *unstructured.Unstructured {
	GinkgoHelper()
	documents := strings.Split(sample(kind), "\n---\n")
	obj := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(documents[len(documents)-1]), &obj.Object)).To(Succeed())
	return obj
}

// kubectlIn runs kubectl as a user would, in a namespace.
func kubectlIn(namespace, stdin string, args ...string) string {
	GinkgoHelper()
	// A sample may name a namespace; a spec has its own.
	stdin = strings.Replace(stdin, "namespace: default", "namespace: "+namespace, 1)
	output, err := env.Kubectl(stdin, append([]string{"-n", namespace}, args...)...)
	Expect(err).NotTo(HaveOccurred())
	return output
}

var _ = Describe("every kind's sample", func() {
	for _, kind := range []string{"modelbox", "app", "genericdaemon", "uniteddeployment", "eru"} {
		DescribeTable("stays as it is when it is applied again: "+kind, func(flags ...string) {
			namespace := newNamespace()
			apply := func() {
				GinkgoHelper()
				kubectlIn(namespace, sample(kind), append([]string{"apply", "-f", "-"}, flags...)...)
			}
			stored := func() *unstructured.Unstructured {
				GinkgoHelper()
				obj := sampleObject(kind)
				obj.SetNamespace(namespace)
				Expect(env.Client.Get(context.Background(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
				return obj
			}
			apply()
			before := stored()
			for range 3 {
				apply()
			}
			Expect(stored()).To(Equal(before))
			Expect(kubectlIn(namespace, sample(kind), append([]string{"diff", "-f", "-"}, flags...)...)).To(BeEmpty())
		},
			Entry("client-side"),
			Entry("server-side", "--server-side"),
		)
	}
})

var _ = DescribeTable("an invalid object is refused at once, with the field and how to correct it",
	func(gvk schema.GroupVersionKind, spec map[string]any, want ...string) {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		obj.SetGroupVersionKind(gvk)
		obj.SetName("bad")
		obj.SetNamespace("default")
		err := env.Client.Create(context.Background(), obj)
		Expect(err).To(HaveOccurred())
		for _, part := range want {
			Expect(err).To(MatchError(ContainSubstring(part)))
		}
	},
	Entry("App", schema.GroupVersionKind{Group: "app.huolala.cn", Version: "v1", Kind: "App"},
		map[string]any{"image": "A B", "replicas": -1, "envs": []any{map[string]any{"name": "A=B"}}},
		"spec.image", "spec.replicas", "spec.envs[0].name"),
	Entry("Genericdaemon", schema.GroupVersionKind{Group: "mydomain.com", Version: "v1beta1", Kind: "Genericdaemon"},
		map[string]any{"image": "syslog:1", "label": "a b=c", "rollingUpdate": "0%"},
		"spec.label", "spec.rollingUpdate"),
	Entry("UnitedDeployment", schema.GroupVersionKind{Group: "extension.k8s.io", Version: "v1", Kind: "UnitedDeployment"},
		map[string]any{"deploymentName": "Web", "replicas": -1},
		"spec.deploymentName", "spec.replicas"),
	Entry("Eru", schema.GroupVersionKind{Group: "mtsre.meitu.com", Version: "v1", Kind: "Eru"},
		map[string]any{"schedule": "0 0 30 2 *", "timeZone": "Mars/Base", "historyLimit": 101},
		"spec.schedule", "spec.timeZone", "spec.historyLimit"),
)

var _ = DescribeTable("a spec that is allowed but risky causes a warning", func(manifest string, want string) {
	Expect(kubectlIn(newNamespace(), manifest, "apply", "-f", "-")).To(And(ContainSubstring("Warning: "), ContainSubstring(want)))
},
	Entry("the next runs of an Eru", `{apiVersion: mtsre.meitu.com/v1, kind: Eru, metadata: {name: eru}, spec: {enabled: true, schedule: "0 3 * * *"}}`, "T03:00:00"),
	Entry("a daemon on every node", `{apiVersion: mydomain.com/v1beta1, kind: Genericdaemon, metadata: {name: gd}, spec: {image: "syslog:1"}}`, "every node"),
)
