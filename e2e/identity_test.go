//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// privilegedManifest is a DaemonSet with a controller reference, which is forged.
const privilegedManifest = `
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: evil
  namespace: %s
  ownerReferences:
  - {apiVersion: mydomain.com/v1beta1, kind: Genericdaemon, name: evil, uid: "1", controller: true}
spec:
  selector: {matchLabels: {app: evil}}
  template:
    metadata: {labels: {app: evil}}
    spec:
      hostPID: true
      containers: [{name: evil, image: "%s", securityContext: {privileged: true}}]
`

const serviceManifest = `
apiVersion: v1
kind: Service
metadata: {name: evil, namespace: default}
spec: {type: LoadBalancer, ports: [{port: 443}]}
`

const leaseManifest = `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: evil, namespace: modelbox-system}
`

// asController runs kubectl with the rights of the controller, and changes nothing.
func asController(stdin string, args ...string) error {
	identity := []string{kubectl, "--as=system:serviceaccount:" + system + ":modelbox-controller"}
	_, err := attempt(stdin, append(append(identity, args...), "--dry-run=server")...)
	return err
}

var _ = Describe("a stolen token of the controller", func() {
	It("is of use only for what the controller does", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		By("the controller does it: a ModelBox becomes ready")
		apply(ns, fmt.Sprintf("apiVersion: model.github.com/v1\nkind: ModelBox\nmetadata: {name: web}\n"+
			"spec: {image: %q, ports: [{port: 80}], resourceType: custom, resources: {requests: {cpu: 10m, memory: 16Mi}}}\n", nginx))
		awaitReady(ns, "modelbox/web")

		restart := `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-01T00:00:00Z"}}}}}`
		image := `{"spec":{"template":{"spec":{"containers":[{"name":"coredns","image":"evil:1"}]}}}}`
		By("escalating")
		denied := And(HaveOccurred(), MatchError(ContainSubstring("ValidatingAdmissionPolicy 'modelbox-controller'")))
		for what, err := range map[string]error{
			"a privileged DaemonSet in kube-system":           asController(fmt.Sprintf(privilegedManifest, "kube-system", nginx), "create", "-f", "-"),
			"a privileged DaemonSet beside the operator":      asController(fmt.Sprintf(privilegedManifest, system, nginx), "create", "-f", "-"),
			"a Service without a controller":                  asController(serviceManifest, "create", "-f", "-"),
			"another Lease":                                   asController(leaseManifest, "create", "-f", "-"),
			"the image of cluster DNS":                        asController("", "-n", "kube-system", "patch", "deployment", "coredns", "-p", image),
			"a restart of cluster DNS":                        asController("", "-n", "kube-system", "patch", "deployment", "coredns", "-p", restart),
			"a restart of the webhook":                        asController("", "-n", system, "patch", "deployment", "modelbox-webhook", "-p", restart),
			"a child that is handed over, with its own image": asController("", "-n", ns, "patch", "deployment", "web", "--type=merge", "-p", `{"metadata":{"ownerReferences":null}}`),
		} {
			Expect(err).To(denied, what)
		}

		By("doing what the controller does")
		Expect(asController("", "-n", ns, "patch", "deployment", "web", "--field-manager=modelbox-eru", "-p", restart)).To(Succeed())
	})
})
