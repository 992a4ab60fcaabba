// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package target chooses the cluster that the operator runs against: that of a kubeconfig,
// which others may use too, or the local one, which belongs to this clone.
package target

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Request is what the user selects explicitly.
type Request struct {
	// Local is the setting that selects the local cluster, such as LOCAL=1, or empty.
	Local string
	// Context is the name of a context, or empty.
	Context string
}

// Kubeconfig is what the user's kubeconfig files contain.
type Kubeconfig struct {
	*clientcmdapi.Config
	// Files are their absolute paths, in the order of their precedence.
	Files []string
	// Local is the cluster in the kubeconfig of the local cluster, or nil if there is none.
	Local *clientcmdapi.Cluster
}

// Cluster is the cluster of a context of a kubeconfig.
type Cluster struct {
	Context, Server string
	// Namespace is that of the context, or default.
	Namespace string
	// File is the kubeconfig with the context, and Files are all of them.
	File  string
	Files []string
}

// String describes the cluster for messages.
func (c *Cluster) String() string {
	return fmt.Sprintf("the cluster of context %q (%s) in %s", c.Context, c.Server, c.File)
}

// Choice is a cluster to run against, and why.
type Choice struct {
	// Cluster is that of a context, or nil for the local cluster.
	Cluster *Cluster
	// Named reports whether the user has named the context of the cluster.
	Named bool
	// Ask reports whether the user must permit the cluster before any request is sent to it.
	Ask bool
	// Why says why the local cluster is used.
	Why string
}

// Choose returns the cluster that a user's request and kubeconfig select, before any request
// is sent to it. It fails if the request is contradictory, or names a context that does not
// exist.
func Choose(request Request, kubeconfig Kubeconfig) (Choice, error) {
	switch {
	case request.Local != "" && request.Context != "":
		return Choice{}, fmt.Errorf("%s selects the local cluster and CONTEXT=%s another one: set one of them", request.Local, Quote(request.Context))
	case request.Local != "":
		return Choice{Why: request.Local + " selects it"}, nil
	}
	name := cmp.Or(request.Context, kubeconfig.CurrentContext)
	if name == "" {
		return Choice{Why: fmt.Sprintf("no kubeconfig with a current context is at %s", kubeconfig.paths())}, nil
	}
	cluster, selected := kubeconfig.cluster(name)
	if cluster == nil {
		return withoutContext(request, kubeconfig, name)
	}
	if isLocal(cluster, kubeconfig.Local) {
		return Choice{Why: fmt.Sprintf("it is the cluster of context %q in %s", name, selected.File)}, nil
	}
	named := request.Context != ""
	return Choice{Cluster: selected, Named: named, Ask: !named && !onThisHost(cluster)}, nil
}

// withoutContext is the choice if the kubeconfig has no complete context of a name.
func withoutContext(request Request, kubeconfig Kubeconfig, name string) (Choice, error) {
	missing := fmt.Sprintf("%s has no context %q with a cluster", kubeconfig.paths(), name)
	if request.Context == "" {
		return Choice{Why: missing}, nil
	}
	var names []string
	for name := range kubeconfig.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return Choice{}, fmt.Errorf("CONTEXT: %s: choose one of %q", missing, names)
}

func (k Kubeconfig) paths() string { return strings.Join(k.Files, string(os.PathListSeparator)) }

// cluster returns the cluster of a context, and its description. Both are nil if the context does
// not exist or has no cluster.
func (k Kubeconfig) cluster(name string) (*clientcmdapi.Cluster, *Cluster) {
	context := k.Contexts[name]
	if context == nil || k.Clusters[context.Cluster] == nil {
		return nil, nil
	}
	cluster := k.Clusters[context.Cluster]
	return cluster, &Cluster{
		Context: name, Server: cluster.Server, Namespace: cmp.Or(context.Namespace, corev1.NamespaceDefault),
		File: cmp.Or(context.LocationOfOrigin, k.paths()), Files: k.Files,
	}
}

// isLocal reports whether a cluster is the local one, whose context may be in another kubeconfig as
// well. Another local cluster may have had the same port before, but not the same authority.
func isLocal(cluster, local *clientcmdapi.Cluster) bool {
	return local != nil && cluster.Server == local.Server && len(local.CertificateAuthorityData) > 0 &&
		bytes.Equal(cluster.CertificateAuthorityData, local.CertificateAuthorityData)
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

// Answered returns the choice after the question of [Choice.Ask]. asked is false if there is no
// terminal to ask on, which is an error.
func (c Choice) Answered(asked, yes bool) (Choice, error) {
	switch {
	case !asked:
		return Choice{}, fmt.Errorf("%s is not on this host: CONTEXT=%s permits its use, and LOCAL=1 selects the local cluster",
			c.Cluster, Quote(c.Cluster.Context))
	case !yes:
		return Choice{Why: fmt.Sprintf("%s was declined", c.Cluster)}, nil
	}
	c.Ask, c.Named = false, true
	return c, nil
}

// Checked returns the choice after the first requests to the cluster of a context: missing are the
// CRDs that it does not have, and failed is the error of a request. Such a cluster is used only if
// the user has named it, and then it is an error.
func (c Choice) Checked(missing []string, failed error) (Choice, error) {
	var reason string
	switch {
	case failed != nil:
		reason = fmt.Sprintf("%s cannot be used: %v", c.Cluster, failed)
	case len(missing) > 0:
		reason = fmt.Sprintf("%s does not have the CRDs %s: 'make install' applies them to the cluster of the current context",
			c.Cluster, strings.Join(missing, ", "))
	default:
		return c, nil
	}
	if c.Named {
		return Choice{}, errors.New(reason)
	}
	return Choice{Why: reason}, nil
}

// Kubectl returns the beginning of a kubectl command for the cluster, quoted for a shell.
func (c *Cluster) Kubectl() string {
	context := "--context " + Quote(c.Context)
	if len(c.Files) == 1 {
		return "kubectl --kubeconfig " + Quote(c.Files[0]) + " " + context
	}
	return "KUBECONFIG=" + Quote(strings.Join(c.Files, string(os.PathListSeparator))) + " kubectl " + context
}

// Quote quotes a word for a POSIX shell, if necessary.
func Quote(word string) string {
	harmless := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)
	}
	if word != "" && strings.TrimLeftFunc(word, harmless) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Absolute returns the absolute form of paths, without empty ones.
func Absolute(paths []string) ([]string, error) {
	var out []string
	for _, path := range paths {
		if path == "" {
			continue
		}
		absolute, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		out = append(out, absolute)
	}
	return out, nil
}
