// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

// installWebhooks starts the webhooks of the kinds with children, and installs their
// configurations for one namespace. It returns a function that removes both.
func installWebhooks(ctx context.Context, namespace string) (remove func()) {
	GinkgoHelper()
	local := &envtest.WebhookInstallOptions{Paths: []string{filepath.Join(testenv.Root(), "config", "webhook", "generated")}}
	Expect(local.PrepWithoutInstalling()).To(Succeed())
	server := serveWebhooks(local)
	only := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}
	mutating, validating := local.MutatingWebhooks[0], local.ValidatingWebhooks[0]
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].NamespaceSelector = only
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].NamespaceSelector = only
	}
	Expect(env.Client.Create(ctx, mutating)).To(Succeed())
	Expect(env.Client.Create(ctx, validating)).To(Succeed())
	waitForWebhooks(ctx, namespace)
	return func() {
		ctx := context.Background()
		Expect(env.Client.Delete(ctx, mutating)).To(Succeed())
		Expect(env.Client.Delete(ctx, validating)).To(Succeed())
		Expect(server.end()).To(Succeed())
		Expect(local.Cleanup()).To(Succeed())
	}
}

// waitForWebhooks waits until both webhooks are called: the mutating one for a ModelBox sets
// fields, and only the validating one for an App refuses its image.
func waitForWebhooks(ctx context.Context, namespace string) {
	GinkgoHelper()
	named := metav1.ObjectMeta{Namespace: namespace, Name: "probe"}
	Eventually(func() string {
		box := &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
		if err := env.Client.Create(ctx, box, client.DryRunAll); err != nil {
			return err.Error()
		}
		return box.Spec.Name
	}).Should(Equal("probe"))
	Eventually(func() error {
		return env.Client.Create(ctx, &appv1.App{ObjectMeta: named, Spec: appv1.AppSpec{Image: "Refused"}}, client.DryRunAll)
	}).ShouldNot(Succeed())
}

// serveWebhooks runs the webhook process, without its flags.
func serveWebhooks(local *envtest.WebhookInstallOptions) *process {
	GinkgoHelper()
	mgr, err := manager.New(&rest.Config{}, manager.Options{
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		GracefulShutdownTimeout: new(5 * time.Second),
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: local.LocalServingHost, Port: local.LocalServingPort, CertDir: local.LocalServingCertDir,
		}),
	})
	Expect(err).NotTo(HaveOccurred())
	for _, kind := range all.Kinds {
		if kind.HasPods() {
			admission.Register(mgr.GetWebhookServer(), kind.Erased)
		}
	}
	return launch(mgr)
}
