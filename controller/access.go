// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"
)

const (
	// systemNamespace is the namespace of an install (config/operator).
	systemNamespace = "modelbox-system"
	// podNamespace is the file in which kubelet provides the namespace of a pod.
	podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// access selects the cluster of the process: --kubeconfig, which controller-runtime adds, and
// --context. Without a kubeconfig in that flag or in the environment variable KUBECONFIG, a
// process in a pod uses the cluster of the pod.
type access struct{ context string }

func (a *access) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&a.context, "context", "", "context of the kubeconfig; its current context if empty")
}

// config returns the client configuration of the cluster.
func (a *access) config() (*rest.Config, error) {
	if a.context == "" {
		return ctrl.GetConfig()
	}
	// controller-runtime would ignore the context in a pod.
	overrides := &clientcmd.ConfigOverrides{CurrentContext: a.context}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(loadingRules(), overrides).ClientConfig()
}

// loadingRules returns the rules by which controller-runtime and kubectl find a kubeconfig.
func loadingRules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfigFlag()
	return rules
}

func kubeconfigFlag() string {
	if found := flag.Lookup(ctrlconfig.KubeconfigFlagName); found != nil {
		return found.Value.String()
	}
	return ""
}

// inPod reports whether the process uses the cluster of the pod that it runs in. A kubeconfig
// that is named by a flag, or by KUBECONFIG, is that of another cluster, in which the
// namespace of the pod has no meaning.
func (a *access) inPod() bool {
	if a.context != "" || kubeconfigFlag() != "" || os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" {
		return false
	}
	_, err := os.Stat(podNamespace)
	return !errors.Is(err, fs.ErrNotExist)
}

// leaseNamespace returns the namespace of the lease for a process outside a pod: that of an
// install if the cluster has it, so that this process and a deployed controller never act at
// the same time, and otherwise that of the context. It reads one namespace, within the timeout
// of cfg. It fails if the user may not read it, because two controllers could act then.
func (a *access) leaseNamespace(cfg *rest.Config) (string, error) {
	core, err := corev1client.NewForConfig(cfg)
	if err != nil {
		return "", err
	}
	_, err = core.Namespaces().Get(context.Background(), systemNamespace, metav1.GetOptions{})
	if err == nil {
		return systemNamespace, nil
	}
	if !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("reading namespace %s: %w", systemNamespace, err)
	}
	kubeconfig, err := loadingRules().Load()
	if err != nil {
		return "", err
	}
	return contextNamespace(kubeconfig, a.context), nil
}

// contextNamespace returns the namespace of a context, or of the current context if name is
// empty. A context without one has the namespace default.
func contextNamespace(kubeconfig *clientcmdapi.Config, name string) string {
	selected := kubeconfig.Contexts[cmp.Or(name, kubeconfig.CurrentContext)]
	if selected == nil {
		return corev1.NamespaceDefault
	}
	return cmp.Or(selected.Namespace, corev1.NamespaceDefault)
}
