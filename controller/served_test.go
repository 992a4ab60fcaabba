// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// onlyKinds sets the flag --kinds.
func onlyKinds(kinds string) func(*options) {
	return func(o *options) {
		GinkgoHelper()
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		o.kinds.AddFlag(flags)
		Expect(flags.Parse([]string{"--kinds=" + kinds})).To(Succeed())
	}
}

// reconcilesAlone runs a controller of one kind as a user who has the roles of that kind, until an
// object of it is ready, with each permission that it needs and no request for another kind.
func reconcilesAlone(ctx context.Context, kind *all.Kind, user string) {
	GinkgoHelper()
	name := kind.GVK.Kind
	permissions, err := testenv.Permissions("config/controller/generated/role.yaml", func(role *rbacv1.ClusterRole) bool {
		return role.Name == "modelbox-controller" || role.Name == "modelbox-controller-"+strings.ToLower(name)
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(client.IgnoreAlreadyExists(env.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: controllerNamespace}}))).To(Succeed())
	grant(ctx, user, permissions)
	DeferCleanup(runAs(user, onlyKinds(name)).synced().end)

	named, g := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}, guarantees[name]
	if g.before != nil {
		g.before(ctx, named)
	}
	obj := g.object(named)
	Expect(env.Client.Create(ctx, obj)).To(Succeed())
	g.after(ctx, named)
	Eventually(readiness(ctx, obj)).Should(HavePrefix("True "))

	Expect(env.Refused(user)).To(Succeed())
	requests, err := env.Requests(user)
	Expect(err).NotTo(HaveOccurred())
	Expect(requests).NotTo(BeEmpty())
	for _, other := range all.Kinds {
		for _, request := range requests {
			Expect(other != kind && request.Group == other.GVK.Group).To(BeFalse(), "%s", request)
		}
	}
}

var _ = Describe("a controller of one kind", func() {
	BeforeEach(alone)
	for _, kind := range all.Kinds {
		It("needs no permission of the others: "+kind.GVK.Kind, func(ctx SpecContext) {
			reconcilesAlone(ctx, kind, controllers+"only-"+strings.ToLower(kind.GVK.Kind))
			// What "helm test" asks for is refused by the webhook, which this API server does not call, and not by the schema.
			Expect(testAdmission(ctx, env.Client, newNamespace(), kind.GVK.Kind)).To(MatchError(ContainSubstring("does not call the webhook")))
		})
	}

	It("needs no CRD of the others", func(ctx SpecContext) {
		whole := env
		DeferCleanup(func() { env = whole })
		var err error
		env, err = testenv.Start(testenv.Options{CRDs: []string{"model.github.com_modelboxes.yaml"}, Policies: true})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(env.Stop)
		reconcilesAlone(ctx, all.Kinds[0], controllerUser)
	})
})
