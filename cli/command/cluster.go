// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

// clusterFlags are kubectl's flags that name a cluster, a user and a namespace.
type clusterFlags struct {
	Env
	*genericclioptions.ConfigFlags
}

// newClusterFlags returns the flags without those that a kubeconfig has better places for.
func newClusterFlags(env Env) clusterFlags {
	flags := genericclioptions.NewConfigFlags(false)
	flags.CacheDir, flags.Username, flags.Password, flags.CertFile, flags.KeyFile = nil, nil, nil, nil, nil
	flags.TLSServerName, flags.DisableCompression, flags.ImpersonateUID, flags.ImpersonateUserExtra = nil, nil, nil, nil
	return clusterFlags{env, flags}
}

// noCluster ends the address that client-go assumes without a kubeconfig, outside of a cluster.
const noCluster = "//localhost:8080"

// client returns a client of the API server.
func (f clusterFlags) client() (client.WithWatch, error) {
	if f.Client != nil {
		return f.Client, nil
	}
	config, err := f.ToRESTConfig()
	if raw, unreadable := f.ToRawKubeConfigLoader().RawConfig(); err == nil && unreadable == nil && clientcmdapi.IsConfigEmpty(&raw) && strings.HasSuffix(config.Host, noCluster) {
		return nil, usage("this command needs a cluster: name its kubeconfig with --kubeconfig or KUBECONFIG")
	}
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // The API server's own flow control bounds the requests.
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(api.AddToScheme(scheme))
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// connect returns a client of the API server, and the namespace of the flag, or that of the
// context.
func (f clusterFlags) connect() (c client.WithWatch, namespace string, err error) {
	if c, err = f.client(); err == nil { // Its error says what to do.
		namespace, _, err = f.ToRawKubeConfigLoader().Namespace()
	}
	return c, namespace, err
}

// target is the object that a command works with.
type target struct {
	Env
	kind   *kinds.Kind
	key    client.ObjectKey
	client client.WithWatch
}

// String returns the target as a user names it.
func (t *target) String() string { return t.kind.Singular() + "/" + t.key.Name }

// target returns the object that KIND/NAME, or KIND and NAME, name.
func (f clusterFlags) target(args []string) (*target, error) {
	words := args
	if len(args) == 1 {
		words = strings.SplitN(args[0], "/", 2)
	}
	if len(words) != 2 || words[0] == "" || words[1] == "" {
		return nil, usage("%q names no object: write KIND/NAME, such as modelbox/web", strings.Join(args, " "))
	}
	kind, err := kinds.Find(words[0])
	if err != nil {
		return nil, usage("%w", err)
	}
	c, namespace, err := f.connect()
	if err != nil {
		return nil, err
	}
	return &target{f.Env, kind, client.ObjectKey{Namespace: namespace, Name: words[1]}, c}, nil
}

// onTarget makes a command one for an object of some kinds in the cluster.
func onTarget(env Env, cmd *cobra.Command, is func(*kinds.Kind) bool, run func(context.Context, *target) error) *cobra.Command {
	f := newClusterFlags(env)
	cmd.GroupID, cmd.Args, cmd.ValidArgsFunction = online, cobra.RangeArgs(1, 2), completeKinds(is)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		target, err := f.target(args)
		if err != nil {
			return err
		}
		return again(func() error { return run(cmd.Context(), target) })
	}
	f.AddFlags(cmd.Flags())
	return cmd
}

// again runs what reads, decides, and writes what it has read with a precondition: up to four times
// within half a second, while others, such as a controller that writes status, change it in
// between.
func again(run func() error) error { return retry.RetryOnConflict(retry.DefaultBackoff, run) }

// completeKinds lets the shell complete KIND/ of the kinds that a command is for.
func completeKinds(is func(*kinds.Kind) bool) cobra.CompletionFunc {
	var names []string
	for _, kind := range kinds.All {
		if is(kind) {
			names = append(names, kind.Singular()+"/")
		}
	}
	return cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp)
}
