//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ = Describe("admission", func() {
	DescribeTable("refuses an invalid object with the path of the field",
		func(ctx SpecContext, manifest string, want ...string) {
			out := refused(newNamespace(ctx), manifest)
			for _, text := range want {
				Expect(out).To(ContainSubstring(text))
			}
		},
		Entry("a ModelBox, all errors at once", `
apiVersion: model.github.com/v1
kind: ModelBox
metadata: {name: bad}
spec:
  image: A B
  resourceType: small
  resources: {limits: {cpu: "3"}}
  ports: [{port: 80, targetPort: unknown}]
`, "spec.image", "spec.resources", "set resourceType: custom", "spec.ports[0].targetPort"),
	)

	It("bounds what the token of the controller may write", func() {
		_, err := attempt("", kubectl, "-n", "default", "create", "service", "clusterip", "evil", "--tcp=443", "--dry-run=server",
			"--as=system:serviceaccount:"+system+":modelbox-controller")
		Expect(err).To(MatchError(ContainSubstring("ValidatingAdmissionPolicy 'modelbox-controller'")), "its role allows it")
	})

	It("gives users permissions through view and edit", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		for _, role := range []string{"view", "edit"} {
			binding := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: role},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "a-" + role + "er"}},
			}
			Expect(admin.Create(ctx, binding)).To(Succeed())
		}
		can := func(user string, args ...string) func() string {
			return func() string {
				out, _ := attempt("", append([]string{kubectl, "-n", ns, "auth", "can-i", "--as", user}, args...)...)
				return out
			}
		}
		Eventually(can("a-viewer", "list", "modelboxes.model.github.com")).Should(ContainSubstring("yes"))
		Eventually(can("a-editer", "create", "erus.mtsre.meitu.com")).Should(ContainSubstring("yes"))
		Expect(can("a-viewer", "create", "modelboxes.model.github.com")()).To(ContainSubstring("no"))
		Expect(can("a-editer", "patch", "modelboxes.model.github.com", "--subresource=status")()).To(ContainSubstring("no"))
	})
})
