// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
)

// clusterFlags are kubectl's flags that name a cluster, a user and a namespace.
type clusterFlags struct {
	*genericclioptions.ConfigFlags
	known client.WithWatch
}

// newClusterFlags returns the flags without those that a kubeconfig has better places for.
func newClusterFlags(env Env) clusterFlags {
	flags := genericclioptions.NewConfigFlags(false)
	flags.CacheDir, flags.Username, flags.Password, flags.CertFile, flags.KeyFile = nil, nil, nil, nil, nil
	flags.TLSServerName, flags.DisableCompression, flags.ImpersonateUID, flags.ImpersonateUserExtra = nil, nil, nil, nil
	return clusterFlags{flags, env.Client}
}

func (f clusterFlags) bind(cmd *cobra.Command) { f.AddFlags(cmd.Flags()) }

// given reports whether the user named a namespace.
func (f clusterFlags) given() bool { return f.Namespace != nil && *f.Namespace != "" }

// namespace returns the namespace of the flag, or that of the context.
func (f clusterFlags) namespace() (string, error) {
	namespace, _, err := f.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// client returns a client of the API server.
func (f clusterFlags) client() (client.WithWatch, error) {
	if f.known != nil {
		return f.known, nil
	}
	config, err := f.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("%w; this command needs a cluster: name its kubeconfig with --kubeconfig or KUBECONFIG", err)
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := api.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}
