// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// answerWithin bounds the first requests to the cluster of a context.
const answerWithin = 10 * time.Second

// request is what the user selects by the environment.
type request struct {
	// local is whether the local cluster is selected, and name is its name.
	local bool
	name  string
	// context is the name of a context, or empty.
	context string
}

// cluster is the cluster to run for.
type cluster struct {
	// local is whether it is the local cluster of this name, and why says why.
	local     bool
	name, why string
	// config has its context only, and no reference to another file.
	config *clientcmdapi.Config
}

// String describes the cluster in the first line that a run prints.
func (c *cluster) String() string {
	if c.local {
		return fmt.Sprintf("the local cluster %s, in %s: %s", c.name, c.kubeconfig(), c.why)
	}
	context := c.config.Contexts[c.config.CurrentContext]
	return fmt.Sprintf("the cluster of context %q (%s)", c.config.CurrentContext, c.config.Clusters[context.Cluster].Server)
}

// kubeconfig is the file that cluster.sh writes.
func (c *cluster) kubeconfig() string {
	if c.name == "modelbox" {
		return "bin/kubeconfig"
	}
	return "bin/kubeconfig-" + c.name
}

// kubectl returns the beginning of a command for the cluster.
func (c *cluster) kubectl() string {
	if c.local {
		return "bin/kubectl --kubeconfig " + c.kubeconfig()
	}
	return "kubectl --context '" + c.config.CurrentContext + "'"
}

func (c *cluster) afterwards() string {
	if c.local {
		return "the cluster keeps running (make cluster-down removes it)"
	}
	return "the objects and their children stay"
}

func (c *cluster) rest() (*rest.Config, error) {
	return clientcmd.NewDefaultClientConfig(*c.config, nil).ClientConfig()
}

// start starts the local cluster if it does not run.
func (c *cluster) start(ctx context.Context) error {
	command := exec.CommandContext(ctx, "hack/local/cluster.sh", "up")
	command.Env = append(os.Environ(), "CLUSTER="+c.name)
	command.Stderr = os.Stderr
	err := command.Run()
	if err != nil {
		return fmt.Errorf("starting the local cluster: %w", err)
	}
	c.config, err = clientcmd.LoadFromFile(c.kubeconfig())
	return err
}

// selectCluster returns the cluster that the user's environment and kubeconfig select.
func selectCluster(ctx context.Context) (*cluster, error) {
	local, err := enabled("LOCAL", os.Getenv("CLUSTER") != "")
	if err != nil {
		return nil, err
	}
	r := request{local: local, name: cmp.Or(os.Getenv("CLUSTER"), "modelbox"), context: os.Getenv("CONTEXT")}
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil && !local {
		return nil, fmt.Errorf("reading the kubeconfig (LOCAL=1 selects the local cluster without it): %w", err)
	}
	context, why, err := choose(r, config)
	if err != nil {
		return nil, err
	}
	if context == "" {
		return &cluster{local: true, name: r.name, why: why}, nil
	}
	config.CurrentContext = context
	if err := errors.Join(clientcmdapi.MinifyConfig(config), clientcmdapi.FlattenConfig(config)); err != nil {
		return nil, fmt.Errorf("reading context %q: %w", context, err)
	}
	found := &cluster{config: config}
	if err := found.inspect(ctx); err != nil {
		if r.context != "" || ctx.Err() != nil {
			return nil, fmt.Errorf("%s cannot be used: %w", found, err)
		}
		return &cluster{local: true, name: r.name, why: fmt.Sprintf("%s cannot be used: %v", found, err)}, nil
	}
	return found, nil
}

// choose returns the context to use, or why it is the local cluster. It sends no request.
func choose(r request, config *clientcmdapi.Config) (context, why string, err error) {
	if r.local {
		if r.context != "" {
			return "", "", fmt.Errorf("LOCAL or CLUSTER selects the local cluster and CONTEXT=%s another one: set one of them", r.context)
		}
		return "", "LOCAL or CLUSTER selects it", nil
	}
	name := cmp.Or(r.context, config.CurrentContext)
	if name == "" {
		return "", "the kubeconfig has no current context", nil
	}
	var found *clientcmdapi.Cluster
	if selected := config.Contexts[name]; selected != nil {
		found = config.Clusters[selected.Cluster]
	}
	switch {
	case found == nil && r.context != "":
		return "", "", fmt.Errorf("the kubeconfig has no context %q with a cluster", name)
	case found == nil:
		return "", fmt.Sprintf("the kubeconfig has no context %q with a cluster", name), nil
	case name == "kwok-"+r.name:
		return "", fmt.Sprintf("it is the cluster of context %q", name), nil
	case r.context == "" && !onThisHost(found):
		return "", "", fmt.Errorf("the cluster of context %q (%s) is not on this host: CONTEXT='%s' permits its use, and LOCAL=1 selects the local cluster",
			name, found.Server, name)
	}
	return name, "", nil
}

// onThisHost reports whether the address of a cluster is one that only this host answers: a loopback
// address, or 0.0.0.0, which k3d writes and which is this host as a destination. A proxy may
// answer for another host.
func onThisHost(cluster *clientcmdapi.Cluster) bool {
	server, err := url.Parse(cluster.Server)
	if err != nil || cluster.ProxyURL != "" {
		return false
	}
	if server.Hostname() == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(server.Hostname())
	return err == nil && (address.Unmap().IsLoopback() || address.IsUnspecified())
}

// inspect fails if the cluster does not answer, or lacks a CRD of config/crd/bases.
func (c *cluster) inspect(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerWithin, fmt.Errorf("no answer within %s", answerWithin))
	defer cancel()
	config, err := c.rest()
	if err != nil {
		return err
	}
	config.Timeout = answerWithin // Discovery has no context.
	reader, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	files, err := filepath.Glob("config/crd/bases/*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		group, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_")
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		if err := reader.Get(ctx, client.ObjectKey{Name: plural + "." + group}, crd); err != nil {
			return fmt.Errorf("%w ('make install' applies the CRDs to the cluster of the current context)", err)
		}
	}
	return nil
}
