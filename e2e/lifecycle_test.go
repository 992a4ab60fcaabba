//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

		replaceWebhook(ctx)

		By("deleting every object of the installation, and a user's namespace, in random order")
		install := documents(run(kubectl, "kustomize", "../config"))
		deleted := append(documents(run(kubectl, "get", "namespace", ns, "-o", "yaml")), install...)
		order.Shuffle(len(deleted), func(i, j int) { deleted[i], deleted[j] = deleted[j], deleted[i] })
		for _, document := range deleted {
			Eventually(func() error {
				_, err := attempt(document, kubectl, "delete", "--ignore-not-found", "--wait=false", "-f", "-")
				// The objects of a deleted CRD are deleted too.
				if err != nil && strings.Contains(err.Error(), "no matches for kind") {
					return nil
				}
				return err
			}, 30*time.Second, time.Second).Should(Succeed(), document)
		}
		left := func() string {
			out, err := attempt(strings.Join(deleted, "\n---\n"), kubectl, "get", "--ignore-not-found", "-o", "name", "-f", "-")
			if err != nil && !strings.Contains(err.Error(), "no matches for kind") && !strings.Contains(err.Error(), "not found") {
				return err.Error()
			}
			return strings.Join(lines(out, "/"), "\n")
		}
		Eventually(left, 4*time.Minute, time.Second).Should(BeEmpty())

		By("applying every object of the installation in random order, each until it is accepted")
		order.Shuffle(len(install), func(i, j int) { install[i], install[j] = install[j], install[i] })
		pending := install
		Eventually(func() []string {
			var failed []string
			for _, document := range pending {
				if _, err := attempt(document, kubectl, "apply", "-f", "-"); err != nil {
					failed = append(failed, document)
				}
			}
			pending = failed
			return pending
		}, 2*time.Minute, time.Second).Should(BeEmpty())
		awaitOperator()

		again := newNamespace(ctx)
		apply(again, everyKind)
		awaitReady(again, "modelbox/box")
		awaitReady(again, "app.app.huolala.cn/site")
	})
})

// replaceWebhook replaces the pods of the webhook. A pod to which the API server has idle
// connections ends when they are closed, which takes more than a minute. The new pods have none,
// and end by themselves.
func replaceWebhook(ctx context.Context) {
	GinkgoHelper()
	restart("modelbox-webhook")
	for _, pod := range terminating(ctx, "modelbox-webhook") {
		run(kubectl, "-n", system, "delete", "pod", pod, "--ignore-not-found", "--force", "--grace-period=0")
	}
}

// stopOperator ends all pods of the operator at once. It is for specs that need a cluster without
// the operator, and do not test how it ends: otherwise its namespace waits for pods as above.
func stopOperator() {
	GinkgoHelper()
	_, _ = attempt("", kubectl, "-n", system, "scale", "deployment", "--all", "--replicas=0") // There may be none.
	Eventually(func() string {
		_, _ = attempt("", kubectl, "-n", system, "delete", "pods", "--all", "--force", "--grace-period=0")
		return run(kubectl, "-n", system, "get", "pods", "-o", "name")
	}).Should(BeEmpty())
}

// terminating returns the names of the pods of a process that are being deleted.
func terminating(ctx context.Context, process string) []string {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(admin.List(ctx, pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/name": process})).To(Succeed())
	var names []string
	for _, pod := range pods.Items {
		if pod.DeletionTimestamp != nil {
			names = append(names, pod.Name)
		}
	}
	return names
}

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
