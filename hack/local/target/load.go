// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Load reads the user's kubeconfig files as kubectl does: those in $KUBECONFIG, or ~/.kube/config.
// Files that do not exist are skipped. local is the kubeconfig of the local cluster, which need not
// exist.
func Load(local string) (Kubeconfig, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.Warner = func(error) {} // Of a file that does not exist: the choice says so.
	config, err := rules.Load()
	if err != nil {
		return Kubeconfig{}, fmt.Errorf("reading the kubeconfig (LOCAL=1 selects the local cluster without it): %w", err)
	}
	files, err := Absolute(rules.GetLoadingPrecedence())
	if err != nil {
		return Kubeconfig{}, err
	}
	return Kubeconfig{Config: config, Files: files, Local: clusterIn(local)}, nil
}

// clusterIn returns the cluster of the current context of a file, or nil if it has none.
func clusterIn(file string) *clientcmdapi.Cluster {
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return nil
	}
	return config.Clusters[context.Cluster]
}

// RESTConfig returns the client configuration of a context.
func (k Kubeconfig) RESTConfig(context string) (*rest.Config, error) {
	return clientcmd.NewNonInteractiveClientConfig(*k.Config, context, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
}
