//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a frozen namespace", func() {
	It("refuses a change of pods by a user with edit, and still scales", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		run(kubectl, "-n", ns, "create", "rolebinding", "developer", "--clusterrole=edit", "--user=developer")
		asDeveloper := func(manifest string) (string, error) {
			return attempt(manifest, kubectl, "-n", ns, "--as=developer", "apply", "-f", "-")
		}
		Eventually(func() error {
			_, err := asDeveloper(fmt.Sprintf(appManifest, nginx, 1))
			return err
		}).Should(Succeed(), "the binding of the role is in effect")
		awaitReady(ns, "app.app.huolala.cn/site")

		By("freezing it")
		run(kubectl, "annotate", "namespace", ns, "modelbox-operator.github.io/frozen=until Monday")
		changed := fmt.Sprintf(appManifest, nginxOther, 1)
		Eventually(func() string {
			out, _ := attempt(changed, kubectl, "-n", ns, "--as=developer", "apply", "--dry-run=server", "-f", "-")
			return out
		}).Should(ContainSubstring("is frozen (until Monday)"))
		out, err := asDeveloper(changed)
		Expect(err).To(HaveOccurred(), out)
		Expect(imagesOf(running(ctx, ns, labelsOf("site")))).To(ConsistOf(nginx))

		By("scaling it")
		run(kubectl, "-n", ns, "--as=developer", "scale", "app.app.huolala.cn/site", "--replicas=2")
		Eventually(func() []string { return imagesOf(running(ctx, ns, labelsOf("site"))) }).Should(ConsistOf(nginx, nginx))

		By("ending the freeze")
		run(kubectl, "annotate", "namespace", ns, "modelbox-operator.github.io/frozen-")
		Eventually(func() error {
			_, err := asDeveloper(changed)
			return err
		}).Should(Succeed())
		Eventually(func() []string { return imagesOf(running(ctx, ns, labelsOf("site"))) }).Should(ConsistOf(nginxOther))
	})
})

var _ = Describe("restartOnChange", func() {
	var ns string
	revision := func() string {
		return run(kubectl, "-n", ns, "get", "deployment", "site", "-o", `jsonpath={.metadata.annotations.deployment\.kubernetes\.io/revision}`)
	}
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		run(kubectl, "-n", ns, "create", "configmap", "settings", "--from-literal=COLOUR=red")
		apply(ns, fmt.Sprintf(appManifest, nginx, 1)+`  restartOnChange: Referenced
  envFrom:
  - configMapRef: {name: settings}
`)
		awaitReady(ns, "app.app.huolala.cn/site")
	})

	It("rolls out a changed ConfigMap once", func() {
		colour := func() string {
			out, _ := attempt("", kubectl, "-n", ns, "exec", "deployment/site", "--", "sh", "-c", "echo $COLOUR")
			return out
		}
		Expect(revision()).To(Equal("1"))
		Expect(colour()).To(ContainSubstring("red"))

		By("changing its data")
		run(kubectl, "-n", ns, "patch", "configmap", "settings", "--type=merge", "-p", `{"data":{"COLOUR":"blue"}}`)
		Eventually(revision).Should(Equal("2"))
		awaitAvailable(ns, "site")
		Eventually(colour).Should(ContainSubstring("blue"))

		By("changing a label of it, which is no change of its data")
		run(kubectl, "-n", ns, "label", "configmap", "settings", "a=b")
		Consistently(revision, "5s").Should(Equal("2"))
		awaitReady(ns, "app.app.huolala.cn/site")
	})

	// window is one of an hour that opens when a minute begins, some minutes from now.
	window := func(minutes int) string {
		opens := time.Now().UTC().Add(time.Duration(minutes) * time.Minute)
		return fmt.Sprintf(`"windows":[{"schedule":"%d %d * * *","duration":"1h"}]`, opens.Minute(), opens.Hour())
	}
	reason := func() string {
		return run(kubectl, "-n", ns, "get", "app.app.huolala.cn", "site", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}`)
	}

	It("rolls out when a window opens", func() {
		run(kubectl, "-n", ns, "patch", "app.app.huolala.cn", "site", "--type=merge", "-p", `{"spec":{`+window(2)+`}}`)
		run(kubectl, "-n", ns, "patch", "configmap", "settings", "--type=merge", "-p", `{"data":{"COLOUR":"blue"}}`)
		Eventually(reason, "40s").Should(Equal("WaitingForWindow"))
		Expect(revision()).To(Equal("1"))
		Eventually(revision, "5m").Should(Equal("2"))
		awaitReady(ns, "app.app.huolala.cn/site")
	})

	It("holds a change of the image until a window opens, and scales meanwhile", func(ctx SpecContext) {
		images := func() []string { return imagesOf(running(ctx, ns, labelsOf("site"))) }
		out := run(kubectl, "-n", ns, "patch", "app.app.huolala.cn", "site", "--type=merge", "-p",
			`{"spec":{"holdChanges":"All","replicas":2,"image":"`+nginxOther+`",`+window(4)+`}}`)
		Expect(out).To(ContainSubstring("Warning: spec.holdChanges: this change replaces the pods when the next window opens"))
		Eventually(reason, "2m").Should(Equal("WaitingForWindow"))
		Expect(images()).To(ConsistOf(nginx, nginx))
		Expect(revision()).To(Equal("1"))
		Eventually(images, "7m").Should(ConsistOf(nginxOther, nginxOther))
		awaitReady(ns, "app.app.huolala.cn/site")
		Expect(revision()).To(Equal("2"))
		Expect(run(kubectl, "-n", ns, "get", "controllerrevisions", "--ignore-not-found", "-o", "name")).To(BeEmpty())
	})
})
