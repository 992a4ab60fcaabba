// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
	"github.com/modelbox-operator/modelbox-operator/hack/local/install"
)

// manifests are the objects of config that a run needs.
type manifests struct {
	crds, webhooks, policies []*unstructured.Unstructured
}

// sharedPolicies are the policies for a shared cluster. The third one bounds a service account,
// which the controller of a run does not use.
var sharedPolicies = []string{"requester.yaml", "delegated.yaml"}

func (o Options) load(ctx context.Context) (m manifests, err error) {
	folders := map[string]*[]*unstructured.Unstructured{"crd/bases": &m.crds, "webhook/generated": &m.webhooks}
	if !o.Shared {
		folders["rights"] = &m.policies
	}
	for folder, objects := range folders {
		if *objects, err = install.Load(ctx, o.Kubectl, filepath.Join(o.Root, "config", folder)); err != nil {
			return m, err
		}
	}
	if !o.Shared {
		return m, nil
	}
	for _, file := range sharedPolicies {
		policies, err := install.Load(ctx, "", filepath.Join(o.Root, "config", "policies", file))
		if err != nil {
			return m, err
		}
		m.policies = append(m.policies, policies...)
	}
	return m, nil
}

// refuseBesideDeployed returns an error if an operator is deployed in a shared cluster: two
// webhooks would default the same objects, and two controllers reconcile them.
func (o Options) refuseBesideDeployed(ctx context.Context, c client.Client, m manifests) error {
	if !o.Shared {
		return nil
	}
	found, err := install.Deployed(ctx, c, m.webhooks)
	if err != nil || found == "" {
		return err
	}
	return fmt.Errorf("the operator is deployed in %s: it has the %s. 'make undeploy' deletes the operator, and keeps the CRDs, the objects and their children. "+
		"To run only the controller of this clone with the deployed webhook, scale the deployed controller to 0 and start bin/controller by hand (docs/operations.md)",
		o.Describe, found)
}

// install prepares the cluster: it removes what runs have left that were killed, and installs in
// the local cluster what lasts longer than a run.
func (o Options) install(ctx context.Context, c client.Client, m manifests) error {
	leftovers, err := install.RemoveLeftovers(ctx, c)
	if err != nil {
		return fmt.Errorf("removing what an earlier run has left: %w", err)
	}
	if len(leftovers) > 0 {
		o.Report.Say("removed what an earlier run has left: %s", strings.Join(leftovers, ", "))
	}
	if o.Shared {
		return nil
	}
	step := o.Report.Start("installing CRDs and policies")
	defer step.Fail()
	if err := install.CRDs(ctx, c, m.crds); err != nil {
		return err
	}
	if err := install.Policies(ctx, c, m.policies); err != nil {
		return err
	}
	if err := install.NamespaceExists(ctx, c); err != nil {
		return err
	}
	// Those that were deployed call a Service, which has no endpoint here.
	if err := install.RemoveWebhooks(ctx, c, m.webhooks); err != nil {
		return err
	}
	step.Done()
	return nil
}

// removal is the command that removes what a run has installed, after a kill.
func (o Options) removal() string {
	return o.Command + " " + strings.Join(install.Removal(), " ")
}

// startWebhook starts the webhook process, and lets the API server call it once it is ready. In a
// shared cluster it first tries whether the API server can do so.
func (r *Operator) startWebhook(ctx context.Context, o Options, m manifests) (*Server, error) {
	caBundle, err := install.Certificates(o.Certs)
	if err != nil {
		return nil, err
	}
	addresses, err := freeport.Addresses(1)
	if err != nil {
		return nil, err
	}
	address := addresses[0]
	// No endpoints have to move elsewhere before this process may end.
	args := append([]string{"--cert-dir=" + o.Certs, "--webhook-bind-address=" + address, "--drain=0s", "--linger=0s"},
		o.WebhookArgs...)
	server, err := o.serve(ctx, "webhook", args)
	if err != nil {
		return server, err
	}
	endpoint := install.Endpoint{URL: "https://" + address, CABundle: caBundle}
	if o.Shared {
		if err := r.run.Reachable(ctx, m.webhooks, endpoint, o.LeaseNamespace); err != nil {
			return server, o.unreachable(endpoint, err)
		}
	}
	return server, r.run.Webhooks(ctx, m.webhooks, endpoint)
}

// unreachable explains why the webhook cannot be called, or why that could not be tried.
func (o Options) unreachable(endpoint install.Endpoint, err error) error {
	const instead = "'make run ENABLE_WEBHOOKS=false' runs the controller alone, which applies the same defaults and rules before it acts"
	if !errors.Is(err, install.ErrUnreachable) {
		return fmt.Errorf("trying whether the API server of %s reaches the webhook at %s: %w. %s", o.Describe, endpoint.URL, err, instead)
	}
	return fmt.Errorf("in %s, with the webhook at %s, an address of this host: %w. "+
		"For the API server of kind or minikube, which runs in a container or a virtual machine, 127.0.0.1 is another host. No webhook configuration was installed. %s",
		o.Describe, endpoint.URL, err, instead)
}
