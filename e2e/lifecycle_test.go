//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"math/rand/v2"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// everyKind holds an object of each kind. The UnitedDeployment and the Eru need the
// Deployment "idle".
const everyKind = `
apiVersion: model.github.com/v1
kind: ModelBox
metadata: {name: box}
spec: {image: "nginx:1.27", replicas: 0, ports: [{port: 80}]}
---
apiVersion: app.huolala.cn/v1
kind: App
metadata: {name: site}
spec: {image: "nginx:1.27", replicas: 0, ports: [{port: 80}]}
---
apiVersion: mydomain.com/v1beta1
kind: Genericdaemon
metadata: {name: agent}
spec: {image: "nginx:1.27", label: no-such-node}
---
apiVersion: extension.k8s.io/v1
kind: UnitedDeployment
metadata: {name: hold}
spec: {deploymentName: idle, replicas: 0}
---
apiVersion: mtsre.meitu.com/v1
kind: Eru
metadata: {name: idle}
spec: {enabled: true}
`

var _ = Describe("installing and uninstalling", Serial, func() {
	It("succeed in random order", func(ctx SpecContext) {
		order := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 0))
		DeferCleanup(func() { // The other specs need the operator, also after a failure.
			Eventually(applyOperator, 2*time.Minute, time.Second).Should(Succeed())
			awaitOperator()
		})
		ns := newNamespace(ctx)
		deployment(ctx, ns, "idle", 0, map[string]string{"mtsre.meitu.com/eru": "true"})
		apply(ns, everyKind)
		awaitReady(ns, "modelbox/box")

		By("deleting every object of the installation, and a user's namespace, in random order")
		install := documents(run(kubectl, "kustomize", "../config"))
		deleted := append(documents(run(kubectl, "get", "namespace", ns, "-o", "yaml")), install...)
		order.Shuffle(len(deleted), func(i, j int) { deleted[i], deleted[j] = deleted[j], deleted[i] })
		Eventually(func() error {
			_, err := attempt(stream(deleted), kubectl, "delete", "--ignore-not-found", "--wait=false", "-f", "-")
			return err
		}, 30*time.Second, time.Second).Should(Succeed())
		stopOperator()
		left := func() string {
			out, err := attempt(stream(deleted), kubectl, "get", "--ignore-not-found", "-o", "name", "-f", "-")
			if err != nil && !strings.Contains(err.Error(), "no matches for kind") && !strings.Contains(err.Error(), "not found") {
				return err.Error()
			}
			return strings.Join(lines(out, "/"), "\n")
		}
		Eventually(left, 4*time.Minute, time.Second).Should(BeEmpty())

		By("applying every object of the installation in random order, each until it is accepted")
		order.Shuffle(len(install), func(i, j int) { install[i], install[j] = install[j], install[i] })
		Eventually(func() error {
			_, err := attempt(stream(install), kubectl, "apply", "-f", "-")
			return err
		}, 2*time.Minute, time.Second).Should(Succeed())
		awaitOperator()

		again := newNamespace(ctx)
		apply(again, everyKind)
		awaitReady(again, "modelbox/box")
		awaitReady(again, "app.app.huolala.cn/site")
	})
})

// removeOperator removes what "make deploy" has installed, all objects of the five kinds, and what
// these own.
func removeOperator() {
	GinkgoHelper()
	stopOperator()
	Expect(try("make undeploy")).Error().NotTo(HaveOccurred())
	Expect(try("make uninstall")).Error().NotTo(HaveOccurred())
}

// stopOperator ends all pods of the operator at once. It is for specs that do not test how they end: a
// pod of the webhook to which the API server has idle connections ends when they are closed, which takes
// up to a minute.
func stopOperator() {
	GinkgoHelper()
	_, _ = attempt("", kubectl, "-n", system, "scale", "deployment", "--all", "--replicas=0") // There may be none.
	Eventually(func() string {
		_, _ = attempt("", kubectl, "-n", system, "delete", "pods", "--all", "--force", "--grace-period=0")
		return run(kubectl, "-n", system, "get", "pods", "-o", "name")
	}).Should(BeEmpty())
}

// stream returns a YAML stream of documents.
func stream(documents []string) string { return strings.Join(documents, "\n---\n") }

// documents returns the documents of a YAML stream.
func documents(stream string) []string {
	var out []string
	for document := range strings.SplitSeq(stream, "\n---\n") {
		if strings.TrimSpace(document) != "" {
			out = append(out, document)
		}
	}
	return out
}

// lines returns the lines of a text that contain a substring and no spaces.
func lines(text, containing string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, containing) && !strings.Contains(line, " ") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}
