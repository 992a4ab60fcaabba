// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// minorVersion returns the minor version of Kubernetes that the suite runs on: "make test-versions"
// runs it on several.
func minorVersion() int {
	GinkgoHelper()
	c, err := discovery.NewDiscoveryClientForConfig(env.Config)
	Expect(err).NotTo(HaveOccurred())
	info, err := c.ServerVersion()
	Expect(err).NotTo(HaveOccurred())
	minor, err := strconv.Atoi(strings.TrimSuffix(info.Minor, "+"))
	Expect(err).NotTo(HaveOccurred())
	return minor
}

// since skips a spec on a version of Kubernetes that does not have what it is about.
func since(minor int, what string) {
	GinkgoHelper()
	if minorVersion() < minor {
		Skip(fmt.Sprintf("Kubernetes has %s since 1.%d", what, minor))
	}
}

// An API server removes a field that it does not know, or whose feature gate is disabled, from what a
// client sends, without an error: what was validated is not what runs.
var _ = Describe("a field of a pod that the API server does not serve", func() {
	It("is named by the Ready condition", func(ctx SpecContext) {
		By("a field of 1.37, which disables it, and unknown to all versions before")
		box := createBox(ctx, func(spec *modelv1.ModelBoxSpec) {
			spec.PodTemplate = &runtime.RawExtension{Raw: []byte(`{"spec":{"evictionResponders":[{"name":"example.com/a","priority":10000}]}}`)}
		})
		Eventually(func(g Gomega) {
			g.Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(box), box)).To(Succeed())
			g.Expect(meta.FindStatusCondition(box.Status.Conditions, status.ConditionReady)).To(HaveValue(And(
				HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("evictionResponders")))))
		}).Should(Succeed())
	})
})
