//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"math/big"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/controller/certificate"
)

// renewal is longer than the controller takes for a renewal: a minute until all API servers have
// the new CA, and the start of another leader.
const renewal = 4 * time.Minute

// The steps are those of docs/operations.md.
var _ = Describe("a certificate that the controller issues", Serial, func() {
	It("takes the place of cert-manager's, and is renewed, without a lost admission request", func(ctx SpecContext) {
		DeferCleanup(returnToCertManager)
		load := admitting(ctx)

		By("1: removing what cert-manager works on")
		run(kubectl, "-n", system, "delete", "certificates.cert-manager.io,issuers.cert-manager.io", "--all")

		By("2: deploying without cert-manager")
		run("make", "--no-print-directory", "-C", "..", "deploy", "CERTS=self-managed")
		run(kubectl, "-n", system, "rollout", "status", "deployment", "modelbox-controller", "--timeout=240s")
		Eventually(issuer, renewal).WithArguments(ctx).Should(HavePrefix("modelbox-webhook-ca@"))
		awaitServed(ctx)

		By("renewing it")
		before := leaf(ctx).SerialNumber
		run(kubectl, "-n", system, "annotate", "secret", "modelbox-webhook-tls", certificate.AnnotationRenew+"=now")
		Eventually(requested, renewal).WithArguments(ctx).Should(BeFalse())
		Expect(leaf(ctx).SerialNumber).NotTo(Equal(before))
		awaitServed(ctx)

		By("applying the manifests again, which changes neither the Secret nor caBundle")
		serial, bundles := leaf(ctx).SerialNumber, trusted(ctx)
		run("make", "--no-print-directory", "-C", "..", "deploy", "CERTS=self-managed")
		Expect(leaf(ctx).SerialNumber).To(Equal(serial))
		Expect(trusted(ctx)).To(Equal(bundles))

		By("beginning a new pod, which has only the Secret")
		restart("modelbox-webhook")
		Eventually(func() ([]*big.Int, error) { return served(ctx) }).Should(HaveEach(Equal(leaf(ctx).SerialNumber)))
		load.lostNone("the change to the controller's certificate, and its renewal")
	})
})

func issuer(ctx SpecContext) string {
	GinkgoHelper()
	return leaf(ctx).Issuer.CommonName
}

// requested tells whether a renewal is requested, and not complete.
func requested(ctx SpecContext) bool {
	GinkgoHelper()
	secret := get(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "modelbox-webhook-tls"}})
	_, ok := secret.Annotations[certificate.AnnotationRenew]
	return ok
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
