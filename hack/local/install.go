// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// runLabel is the label of what is installed only for as long as the processes run.
	runLabel = "modelbox-operator.github.io/run"
	// resources are the kinds of these objects, as kubectl names them.
	resources = "mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicybindings,validatingadmissionpolicies"
	// runSuffix distinguishes their names from those of a deployed operator.
	runSuffix = "-run"

	operatorNamespace = "modelbox-system"
)

// policyFiles are the policies of a run. The other one, controller.yaml, bounds the service account of a
// deployed controller, which a run does not use.
var policyFiles = []string{"config/policies/requester.yaml", "config/policies/delegated.yaml", "config/policies/frozen.yaml"}

// temporary returns an object of each of these kinds. What makes the API server refuse requests is first.
func temporary() []client.Object {
	return []client.Object{
		&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{}, &admissionregistrationv1.ValidatingAdmissionPolicy{},
	}
}

// installation is what a run has installed in a cluster.
type installation struct {
	id      string
	cluster *cluster
	config  *rest.Config
	c       client.Client
	// namespace is that of the controller's lease.
	namespace string
}

func newInstallation(cluster *cluster) (*installation, error) {
	config, err := cluster.rest()
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // The API server has limits of its own.
	c, err := client.New(config, client.Options{})
	return &installation{id: string(uuid.NewUUID()), cluster: cluster, config: config, c: c}, err
}

// prepare removes what runs have left that were killed, and installs in the local cluster what lasts
// longer than a run. It fails if the operator is deployed in the cluster: two webhooks would
// default the same objects, and two controllers reconcile them.
func (i *installation) prepare(ctx context.Context) error {
	err := i.c.Get(ctx, client.ObjectKey{Name: "modelbox-webhook"}, &admissionregistrationv1.MutatingWebhookConfiguration{})
	if err == nil {
		return fmt.Errorf("the operator is deployed in %s: 'make undeploy' deletes it, and keeps the CRDs, the objects and their children", i.cluster)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking for a deployed operator: %w", err)
	}
	if err := i.removeAll(ctx, client.HasLabels{runLabel}); err != nil {
		return fmt.Errorf("removing what an earlier run has left: %w", err)
	}
	if i.cluster.local {
		if _, err := envtest.InstallCRDs(i.config, envtest.CRDInstallOptions{Paths: []string{"config/crd/bases"}, ErrorIfPathMissing: true}); err != nil {
			return fmt.Errorf("installing the CRDs: %w", err)
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}
		if err := i.c.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating namespace %s: %w", operatorNamespace, err)
		}
	}
	return i.findNamespace(ctx)
}

// findNamespace sets the namespace of the controller's lease: that of an install if it exists, and
// otherwise that of the context.
func (i *installation) findNamespace(ctx context.Context) error {
	ofContext := i.cluster.config.Contexts[i.cluster.config.CurrentContext].Namespace
	var err error
	for _, i.namespace = range []string{operatorNamespace, cmp.Or(ofContext, metav1.NamespaceDefault)} {
		if err = i.c.Get(ctx, client.ObjectKey{Name: i.namespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("the controller's lease needs a namespace: %w", err)
	}
	return nil
}

// own gives an object the label and the name of a run. It removes annotations, by which for example
// cert-manager would change it.
func (i *installation) own(object client.Object) {
	object.SetName(object.GetName() + runSuffix)
	object.SetAnnotations(nil)
	object.SetLabels(map[string]string{runLabel: i.id})
}

// policies creates copies of the policies and their bindings.
func (i *installation) policies(ctx context.Context) error {
	for _, file := range policyFiles {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content)); ; {
			policy := &unstructured.Unstructured{}
			if err := decoder.Decode(&policy.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return fmt.Errorf("reading %s: %w", file, err)
			}
			i.own(policy)
			if name, bound, _ := unstructured.NestedString(policy.Object, "spec", "policyName"); bound {
				_ = unstructured.SetNestedField(policy.Object, name+runSuffix, "spec", "policyName")
			}
			if err := i.c.Create(ctx, policy); err != nil {
				return fmt.Errorf("creating %s %s: %w", policy.GetKind(), policy.GetName(), err)
			}
		}
	}
	return nil
}

// webhookConfigurations returns the webhook configurations of an install, changed to call a free port of
// this host, and a certificate for it.
func (o *operator) webhookConfigurations(ctx context.Context) (*envtest.WebhookInstallOptions, error) {
	kubectl := "kubectl"
	if o.cluster.local {
		kubectl = filepath.Join("bin", "kubectl")
	}
	manifests := filepath.Join(o.dir, "webhook.yaml")
	built, err := exec.CommandContext(ctx, kubectl, "kustomize", "config/webhook").Output()
	if err != nil {
		return nil, fmt.Errorf("building config/webhook: %w", err)
	}
	if err := os.WriteFile(manifests, built, 0o600); err != nil {
		return nil, err
	}
	hooks := &envtest.WebhookInstallOptions{Paths: []string{manifests}, LocalServingHost: "127.0.0.1"}
	if err := hooks.PrepWithoutInstalling(); err != nil {
		return nil, fmt.Errorf("preparing the webhook configurations: %w", err)
	}
	return hooks, nil
}

// webhooks creates the webhook configurations. At first they select a single object by its label, to try
// whether the API server reaches the webhook, without an effect on others.
func (i *installation) webhooks(ctx context.Context, hooks *envtest.WebhookInstallOptions) error {
	label := map[string]string{runLabel: i.id}
	port := fmt.Sprintf(":%d/", hooks.LocalServingPort)
	for _, hook := range clientConfigs(hooks) {
		// The paths of the Services begin with a slash, and envtest adds another one.
		hook.URL = new(strings.Replace(*hook.URL, port+"/", port, 1))
	}
	setSelectors(hooks, &metav1.LabelSelector{MatchLabels: label})
	for _, object := range configurations(hooks) {
		i.own(object)
		if err := i.c.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %s: %w", object.GetName(), err)
		}
	}
	if err := i.awaitDefaults(ctx, label); err != nil {
		return fmt.Errorf("in %s, the API server cannot call the webhook at 127.0.0.1%s, an address of this host: %w. "+
			"For the API server of kind or minikube, which runs in a container or a virtual machine, 127.0.0.1 is another host. "+
			"'make run ENABLE_WEBHOOKS=false' runs the controller alone, which applies the same defaults and rules before it acts",
			i.cluster, port, err)
	}
	setSelectors(hooks, nil)
	for _, object := range configurations(hooks) {
		if err := i.c.Update(ctx, object); err != nil {
			return fmt.Errorf("updating %s: %w", object.GetName(), err)
		}
	}
	return i.awaitDefaults(ctx, nil)
}

func configurations(hooks *envtest.WebhookInstallOptions) []client.Object {
	var objects []client.Object
	for _, configuration := range hooks.MutatingWebhooks {
		objects = append(objects, configuration)
	}
	for _, configuration := range hooks.ValidatingWebhooks {
		objects = append(objects, configuration)
	}
	return objects
}

func clientConfigs(hooks *envtest.WebhookInstallOptions) []*admissionregistrationv1.WebhookClientConfig {
	var configs []*admissionregistrationv1.WebhookClientConfig
	for _, configuration := range hooks.MutatingWebhooks {
		for j := range configuration.Webhooks {
			configs = append(configs, &configuration.Webhooks[j].ClientConfig)
		}
	}
	for _, configuration := range hooks.ValidatingWebhooks {
		for j := range configuration.Webhooks {
			configs = append(configs, &configuration.Webhooks[j].ClientConfig)
		}
	}
	return configs
}

func setSelectors(hooks *envtest.WebhookInstallOptions, selector *metav1.LabelSelector) {
	for _, configuration := range hooks.MutatingWebhooks {
		for j := range configuration.Webhooks {
			configuration.Webhooks[j].ObjectSelector = selector
		}
	}
	for _, configuration := range hooks.ValidatingWebhooks {
		for j := range configuration.Webhooks {
			configuration.Webhooks[j].ObjectSelector = selector
		}
	}
}

// awaitDefaults creates a ModelBox in a dry run, which stores nothing, until the webhook has set its
// defaults: the API server needs a moment until it uses a new configuration. It sets defaultProbes in
// every ModelBox, and the schema does not.
func (i *installation) awaitDefaults(ctx context.Context, labels map[string]string) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		box := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"image": "probe:1"}}}
		box.SetAPIVersion("model.github.com/v1")
		box.SetKind("ModelBox")
		box.SetNamespace(i.namespace)
		box.SetName("modelbox-probe")
		box.SetLabels(labels)
		if last = i.c.Create(ctx, box, client.DryRunAll); last != nil {
			if strings.Contains(last.Error(), "failed calling webhook") {
				return false, last
			}
			return false, nil
		}
		set, _, err := unstructured.NestedString(box.Object, "spec", "defaultProbes")
		return set != "", err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return errors.Join(errors.New("it did not call it within 20s"), last)
	}
	return err
}

// remove deletes what this run has created, also after an interruption.
func (i *installation) remove() error {
	err := i.removeAll(context.Background(), client.MatchingLabels{runLabel: i.id})
	if err != nil {
		return fmt.Errorf("removing what this run has installed: %w", err)
	}
	return nil
}

func (i *installation) removeAll(ctx context.Context, selector client.DeleteAllOfOption) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	var errs []error
	for _, object := range temporary() {
		errs = append(errs, i.c.DeleteAllOf(ctx, object, selector))
	}
	return errors.Join(errs...)
}
