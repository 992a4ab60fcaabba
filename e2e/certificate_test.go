//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// renewal is longer than the controller takes for a renewal: a minute until all API servers have
// the new CA, and the start of another leader.
const renewal = 4 * time.Minute

// The steps are those of docs/certificates.md.
var _ = Describe("a certificate that the controller issues", func() {
	It("takes the place of cert-manager's without a lost admission request", long+1, func(ctx SpecContext) {
		alone("controller", "webhook")
		DeferCleanup(returnToCertManager)
		load := admitting(ctx, seldom)

		By("1: removing what cert-manager works on")
		run(kubectl, "-n", system, "delete", "certificates.cert-manager.io,issuers.cert-manager.io", "--all")

		By("2: deploying without cert-manager")
		Expect(applyInstall("self-managed")).To(Succeed())
		run(kubectl, "-n", system, "rollout", "status", "deployment", "modelbox-controller", "--timeout=240s")
		Eventually(issuer, renewal).WithArguments(ctx).Should(HavePrefix("modelbox-webhook-ca@"))
		awaitServed(ctx)

		By("applying the manifests again, which changes neither the Secret nor caBundle")
		serial, bundles := leaf(ctx).SerialNumber, trusted(ctx)
		Expect(applyInstall("self-managed")).To(Succeed())
		Expect(leaf(ctx).SerialNumber).To(Equal(serial))
		Expect(trusted(ctx)).To(Equal(bundles))

		By("beginning a new pod, which has only the Secret")
		restart("modelbox-webhook")
		awaitServed(ctx)
		load.lostNone("the change to the controller's certificate")
	})
})

func issuer(ctx SpecContext) string {
	GinkgoHelper()
	return leaf(ctx).Issuer.CommonName
}

// returnToCertManager restores the state of the manifests, also after a failure.
func returnToCertManager(ctx SpecContext) {
	run(kubectl, "delete", "--ignore-not-found", "-f", "../config/certs-self-managed/roles.yaml")
	Expect(applyOperator()).To(Succeed())
	run(kubectl, "-n", system, "wait", "--for=condition=Ready", "--timeout=60s", "certificate", "--all")
	Eventually(func() string {
		renew(ctx)
		return leaf(ctx).Issuer.CommonName
	}).Should(Equal("modelbox-root"))
	awaitServed(ctx)
	trust(ctx, root("modelbox-root"))
	awaitOperator()
}

// The steps are those of docs/certificates.md.
var _ = Describe("a new root certificate", disturbing-1, func() {
	It("replaces the old one without a lost admission request", func(ctx SpecContext) {
		alone("webhook")
		DeferCleanup(func(ctx SpecContext) { // Restore the state of the manifests, also after a failure.
			inject("inject-ca-from=modelbox-system/modelbox-webhook")
			returnToCertManager(ctx)
		})
		load := admitting(ctx, often)

		By("1: creating the new root in addition to the old one")
		_, err := attempt(newRoot, kubectl, "apply", "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() {
			run(kubectl, "-n", system, "delete", "--ignore-not-found", "certificate/modelbox-root-2", "secret/modelbox-root-2", "secret/modelbox-roots")
		})
		run(kubectl, "-n", system, "wait", "--for=condition=Ready", "--timeout=60s", "certificate/modelbox-root-2")

		By("2: trusting both roots")
		both := filepath.Join(GinkgoT().TempDir(), "ca.crt")
		Expect(os.WriteFile(both, []byte(root("modelbox-root")+root("modelbox-root-2")), 0o600)).To(Succeed())
		run(kubectl, "-n", system, "create", "secret", "generic", "modelbox-roots", "--from-file", both)
		run(kubectl, "-n", system, "annotate", "secret", "modelbox-roots", "cert-manager.io/allow-direct-injection=true")
		inject("inject-ca-from-secret=modelbox-system/modelbox-roots")
		bothRoots := HaveEach(And(ContainSubstring(root("modelbox-root")), ContainSubstring(root("modelbox-root-2"))))
		Eventually(trusted).WithArguments(ctx).Should(bothRoots)

		By("3: issuing the webhook's certificate with the new root")
		run(kubectl, "-n", system, "patch", "issuer", "modelbox-ca", "--type=merge", "-p", `{"spec":{"ca":{"secretName":"modelbox-root-2"}}}`)
		Eventually(func() string {
			renew(ctx)
			return leaf(ctx).Issuer.CommonName
		}).Should(Equal("modelbox-root-2"))
		awaitServed(ctx)

		By("4: trusting only the new root")
		inject("inject-ca-from=modelbox-system/modelbox-webhook")
		Eventually(func() []string {
			trust(ctx, root("modelbox-root-2"))
			return trusted(ctx)
		}).Should(HaveEach(root("modelbox-root-2")))
		restart("modelbox-webhook")
		Expect(trusted(ctx)).To(HaveEach(root("modelbox-root-2")))
		load.lostNone("a new root certificate")
	})
})

const newRoot = `
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: modelbox-root-2
  namespace: modelbox-system
spec:
  isCA: true
  commonName: modelbox-root-2
  secretName: modelbox-root-2
  duration: 87600h
  renewBefore: 8760h
  privateKey: {algorithm: ECDSA, size: 256, rotationPolicy: Never}
  issuerRef: {name: modelbox-self-signed, kind: Issuer, group: cert-manager.io}
`

// root returns a root certificate from its Secret, as PEM.
func root(secret string) string {
	GinkgoHelper()
	return run(kubectl, "-n", system, "get", "secret", secret, "-o", `go-template={{index .data "tls.crt" | base64decode}}`)
}

// inject sets the source from which cert-manager injects the CA bundle.
func inject(source string) {
	GinkgoHelper()
	for _, configurations := range []string{"mutatingwebhookconfiguration", "validatingwebhookconfiguration"} {
		run(kubectl, "annotate", configurations, "modelbox-webhook", "cert-manager.io/inject-ca-from-", "cert-manager.io/inject-ca-from-secret-")
		run(kubectl, "annotate", "--overwrite", configurations, "modelbox-webhook", "cert-manager.io/"+source)
	}
}

// trust sets the CA bundle of the webhook configurations. cert-manager adds to it, and
// does not remove a root that has not expired.
func trust(ctx SpecContext, bundle string) {
	GinkgoHelper()
	named := metav1.ObjectMeta{Name: "modelbox-webhook"}
	Eventually(func() error {
		mutating := get(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: named})
		for i := range mutating.Webhooks {
			mutating.Webhooks[i].ClientConfig.CABundle = []byte(bundle)
		}
		return admin.Update(ctx, mutating)
	}).Should(Succeed())
	Eventually(func() error {
		validating := get(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: named})
		for i := range validating.Webhooks {
			validating.Webhooks[i].ClientConfig.CABundle = []byte(bundle)
		}
		return admin.Update(ctx, validating)
	}).Should(Succeed())
}

// trusted returns the CA bundle of each webhook.
func trusted(ctx SpecContext) []string {
	GinkgoHelper()
	named := metav1.ObjectMeta{Name: "modelbox-webhook"}
	var bundles []string
	for _, w := range get(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: named}).Webhooks {
		bundles = append(bundles, string(w.ClientConfig.CABundle))
	}
	for _, w := range get(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: named}).Webhooks {
		bundles = append(bundles, string(w.ClientConfig.CABundle))
	}
	samples, err := filepath.Glob("../config/samples/*.yaml")
	Expect(err).NotTo(HaveOccurred())
	Expect(bundles).To(HaveLen(2*len(samples)), "two webhooks for each kind")
	return bundles
}
