// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"os"
	"path/filepath"
)

// ClientCertificate has the files of a certificate and its key.
type ClientCertificate struct{ Cert, Key string }

const (
	clientKubeconfig = `apiVersion: v1
kind: Config
users:
- name: "*"
  user:
    client-certificate: %s
    client-key: %s
`
	admissionConfiguration = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %[1]s
- name: ValidatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %[1]s
`
)

// presentToWebhooks makes the API server present a certificate to all webhooks, as
// docs/threat-model.md describes it.
func (e *Env) presentToWebhooks(c *ClientCertificate) error {
	if c == nil {
		return nil
	}
	kubeconfig, configuration := filepath.Join(e.dir, "webhooks.kubeconfig"), filepath.Join(e.dir, "admission.yaml")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, clientKubeconfig, c.Cert, c.Key), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(configuration, fmt.Appendf(nil, admissionConfiguration, kubeconfig), 0o600); err != nil {
		return err
	}
	e.env.ControlPlane.GetAPIServer().Configure().Set("admission-control-config-file", configuration)
	return nil
}
