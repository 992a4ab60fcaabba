// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"flag"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/modelbox-operator/modelbox-operator/controller/certificate"
)

// webhookService is the name of the webhook's Service, in the namespace of the operator, and what
// the names of the webhook configurations begin with.
const webhookService = "modelbox-webhook"

// bindCertificate adds the flags of an install without cert-manager, in which the leader issues
// the certificate of the webhook.
func bindCertificate(flags *flag.FlagSet, o *certificate.Options) {
	flags.StringVar(&o.Secret, "webhook-certificate-secret", "", "name of the Secret, in the namespace of the lease, for the webhook's certificate; "+
		"empty disables certificate management")
	flags.DurationVar(&o.Validity, "webhook-certificate-validity", 30*24*time.Hour,
		"validity of the certificate in --webhook-certificate-secret, at least "+certificate.MinValidity.String()+"; it is renewed after two thirds of that")
}

// configuration returns the name of the two webhook configurations. Those of an install that is
// limited to namespaces end in the namespace of the operator (hack/namespaced).
func (n namespaces) configuration(own string) string {
	if len(n) == 0 {
		return webhookService
	}
	return webhookService + "-" + own
}

// addCertificate adds the controller that keeps the certificate of the webhook, if a flag names
// its Secret.
func (o *options) addCertificate(mgr manager.Manager) error {
	if o.certificate.Secret == "" {
		return nil
	}
	keep := o.certificate
	var err error
	if keep.Namespace, err = o.ownNamespace(); err != nil {
		return err
	}
	keep.Service = webhookService
	keep.Configuration = cmp.Or(keep.Configuration, o.namespaces.configuration(keep.Namespace))
	if err := certificate.SetupWithManager(mgr, clock.RealClock{}, keep); err != nil {
		return fmt.Errorf("--webhook-certificate-secret: %w", err)
	}
	return nil
}
