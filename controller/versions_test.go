// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// lacks returns why a spec cannot run on a version of Kubernetes before 1.minor, or nothing.
func lacks(minor int, what string) string {
	GinkgoHelper()
	reason, err := env.Lacks(minor, what)
	Expect(err).NotTo(HaveOccurred())
	return reason
}

// since skips a spec on a version of Kubernetes that does not have what it is about.
func since(minor int, what string) {
	GinkgoHelper()
	if reason := lacks(minor, what); reason != "" {
		Skip(reason)
	}
}

// The fields of the manifests of the corpora that an API server before 1.35 removes. With refusedFields, it
// also refuses the children, or their changes.
var (
	refusedFields = regexp.MustCompile(`"(resourceClaims|reference)":`)
	removedFields = regexp.MustCompile(`"(trafficDistribution|recursiveReadOnly)":|` + refusedFields.String())
)

// sinceServed skips a spec on a version that does not have these fields, if the manifest of the owner does.
func sinceServed(of string, fields *regexp.Regexp) {
	GinkgoHelper()
	if fields.Match(ownerManifests[of]) {
		since(35, "all fields of "+of)
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
