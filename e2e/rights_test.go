//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// virtualGroup is the API group of the delegated rights, which exist in RBAC only.
	virtualGroup = "rights.modelbox-operator.github.io"
	byRBAC       = "cannot "
	byRequester  = "ValidatingAdmissionPolicy 'modelbox-requester'"
	byDelegated  = "ValidatingAdmissionPolicy 'modelbox-delegated'"
)

// The specs of each kind that a delegated user may create, too.
var rightsManifests = map[string]string{
	"ModelBox":         `{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: a}, spec: {image: "nginx:1.27", ports: [{port: 80}]}}`,
	"App":              `{apiVersion: app.huolala.cn/v1, kind: App, metadata: {name: a}, spec: {image: "nginx:1.27", ports: [{port: 80}]}}`,
	"Genericdaemon":    `{apiVersion: mydomain.com/v1beta1, kind: Genericdaemon, metadata: {name: a}, spec: {image: "nginx:1.27", label: no-node}}`,
	"UnitedDeployment": `{apiVersion: extension.k8s.io/v1, kind: UnitedDeployment, metadata: {name: a}, spec: {deploymentName: web, replicas: 0}}`,
	"Eru":              `{apiVersion: mtsre.meitu.com/v1, kind: Eru, metadata: {name: web}, spec: {}}`,
}

// bounded is a ModelBox that a delegated user may not create.
const bounded = `{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: b},
  spec: {image: "nginx:1.27", podTemplate: {spec: {hostNetwork: true, nodeName: a-node}}}}`

// grantTo binds a ClusterRole of the cluster, or one with the given rules, to a user.
func grantTo(ctx SpecContext, ns, user, name string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	if len(rules) > 0 {
		ref.Kind = "Role"
		Expect(admin.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Rules: rules})).To(Succeed())
	}
	Expect(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: user + "-" + name},
		RoleRef:    ref,
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
}

var _ = Describe("rights", func() {
	onlyTheKinds := rbacv1.PolicyRule{
		APIGroups: []string{"model.github.com", "app.huolala.cn", "mydomain.com", "extension.k8s.io", "mtsre.meitu.com"},
		Resources: []string{"*"}, Verbs: []string{"*"},
	}
	delegated := rbacv1.PolicyRule{
		APIGroups: []string{virtualGroup}, Verbs: []string{"use"},
		Resources: []string{"modelboxes", "apps", "genericdaemons", "uniteddeployments", "erus"},
	}

	// want and wantBounded are parts of the error for each kind, and for the object beyond the bounds of a
	// delegated user; empty if the request is allowed.
	DescribeTable("a user makes through the operator only what the user may make without it",
		func(ctx SpecContext, user, probe, want, wantBounded string, grant func(SpecContext, string)) {
			ns := newNamespace(ctx)
			namespace := get(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
			before := namespace.DeepCopy()
			metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, virtualGroup+"/deployments", "web")
			Expect(admin.Patch(ctx, namespace, client.MergeFrom(before))).To(Succeed())
			grant(ctx, ns)
			if probe != "" {
				Eventually(func() string {
					out, _ := attempt("", kubectl, "-n", ns, "auth", "can-i", "--as", user, "get", probe)
					return out
				}).Should(HavePrefix("yes"))
			}
			try := func(manifest string) string {
				out, err := attempt(manifest, kubectl, "-n", ns, "--as", user, "create", "--dry-run=server", "-f", "-")
				if err == nil {
					return ""
				}
				return out
			}
			expect := func(what, manifest, want string) {
				if want == "" {
					// A binding that was created last may be in effect a moment later.
					Eventually(try).WithArguments(manifest).Should(BeEmpty(), what)
				} else {
					Eventually(try).WithArguments(manifest).Should(ContainSubstring(want), what)
				}
			}
			for kind, manifest := range rightsManifests {
				expect(kind, manifest, want)
			}
			expect("beyond the bounds", bounded, wantBounded)
		},
		Entry("view", "viewer", "modelboxes.model.github.com", byRBAC, byRBAC, func(ctx SpecContext, ns string) {
			grantTo(ctx, ns, "viewer", "view")
		}),
		Entry("edit", "editor", "modelboxes.model.github.com", "", "", func(ctx SpecContext, ns string) {
			grantTo(ctx, ns, "editor", "edit")
		}),
		Entry("admin", "administrator", "modelboxes.model.github.com", "", "", func(ctx SpecContext, ns string) {
			grantTo(ctx, ns, "administrator", "admin")
		}),
		Entry("cluster-admin, in the namespace", "root", "modelboxes.model.github.com", "", "", func(ctx SpecContext, ns string) {
			grantTo(ctx, ns, "root", "cluster-admin")
		}),
		Entry("only the five kinds", "colleague", "modelboxes.model.github.com", byRequester, byRequester, func(ctx SpecContext, ns string) {
			grantTo(ctx, ns, "colleague", "only-the-kinds", onlyTheKinds)
		}),
		Entry("only the five kinds, delegated", "delegate", "modelboxes.model.github.com", "", byDelegated, func(ctx SpecContext, ns string) {
			grantTo(ctx, ns, "delegate", "only-the-kinds", onlyTheKinds)
			grantTo(ctx, ns, "delegate", "delegated", delegated)
		}),
		Entry("no role", "stranger", "", byRBAC, byRBAC, func(SpecContext, string) {}),
	)

	It("checks the account that a GitOps controller impersonates", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		account := "system:serviceaccount:" + ns + ":deployer"
		grantTo(ctx, ns, account, "only-the-kinds", onlyTheKinds)
		try := func() string {
			out, _ := attempt(rightsManifests["ModelBox"], kubectl, "-n", ns, "--as", account, "--as-group", "system:serviceaccounts",
				"--as-group", "system:authenticated", "create", "--dry-run=server", "-f", "-")
			return out
		}
		Eventually(try).Should(ContainSubstring(fmt.Sprintf("%s may not create deployments.apps in namespace %s, which this ModelBox makes", account, ns)))
		grantTo(ctx, ns, account, "edit")
		Eventually(try).Should(ContainSubstring("created (server dry run)"))
	})

	It("lets the controller create an Eru for an annotated Deployment", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		apply(ns, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {mtsre.meitu.com/eru: "true"}}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "nginx:1.27"}]}}
`)
		Eventually(func() string {
			out, _ := attempt("", kubectl, "-n", ns, "get", "eru", "web", "-o", "name")
			return out
		}).Should(ContainSubstring("web"))
	})

	It("has policies without warnings of the API server", func(ctx SpecContext) {
		for _, name := range []string{"modelbox-requester", "modelbox-delegated"} {
			policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
			Eventually(func() bool { return get(ctx, policy).Status.ObservedGeneration == policy.Generation }).Should(BeTrue())
			if checked := policy.Status.TypeChecking; checked != nil {
				Expect(checked.ExpressionWarnings).To(BeEmpty())
			}
		}
	})
})
