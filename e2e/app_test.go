//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
)

const appManifest = `
apiVersion: app.huolala.cn/v1
kind: App
metadata:
  name: site
spec:
  image: %s
  replicas: %d
  ports:
  - port: 8080
    targetPort: 80
  envs:
  - name: DEMO
    value: app
`

var _ = Describe("an App", func() {
	It("serves HTTP through its Service, with its environment variables", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		newClient(ctx, ns)
		apply(ns, fmt.Sprintf(appManifest, nginx, 2))
		awaitReady(ns, "app.app.huolala.cn/site")
		app := get(ctx, &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "site"}})
		fetchable(ns, "http://"+app.Status.Address+"/")
		Expect(run(kubectl, "-n", ns, "exec", "deployment/site", "--", "sh", "-c", "echo $DEMO")).To(ContainSubstring("app"))

		By("changing the image and the number of replicas")
		apply(ns, fmt.Sprintf(appManifest, nginxOther, 1))
		awaitReady(ns, "app.app.huolala.cn/site")
		Eventually(func() []string { return imagesOf(running(ctx, ns, labelsOf("site"))) }).Should(ConsistOf(nginxOther))
		fetchable(ns, "http://"+app.Status.Address+"/")
	})
})
