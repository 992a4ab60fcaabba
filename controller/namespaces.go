// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
)

const (
	// electionID is the name of the Lease that the replicas of this process compete for.
	electionID = "modelbox-controller"
	// renewDeadline is controller-runtime's default. client-go allows half of it for one request.
	renewDeadline = 10 * time.Second
	// podNamespace is the file in which kubelet provides the namespace of a pod.
	podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// ownNamespace returns the namespace of the lease and of the webhook's certificate: that of the
// flag, or else that of the pod.
func (o *options) ownNamespace() (string, error) {
	if o.leaderNamespace != "" {
		return o.leaderNamespace, nil
	}
	data, err := os.ReadFile(podNamespace)
	if err != nil {
		return "", fmt.Errorf("set --leader-election-namespace outside a pod: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// newLease returns client-go's lock of leader election. The one that controller-runtime makes by
// default differs in a recorder: it emits core events whose source is the host name, and
// config/policies allows this process only events.k8s.io with its own name.
func (o *options) newLease(cfg *rest.Config) (resourcelock.Interface, error) {
	namespace, err := o.ownNamespace()
	if err != nil {
		return nil, err
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host name, the identity in the lease: %w", err)
	}
	// The UUID is new in each process: a restarted container has the same host name.
	identity := resourcelock.ResourceLockConfig{Identity: hostname + "_" + string(uuid.NewUUID())}
	return resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, electionID, identity, rest.AddUserAgent(cfg, "leader-election"), renewDeadline)
}

// namespaces is the flag --namespaces: the namespaces whose objects are reconciled, all of them
// if there are none. Watches and requests are then only in these namespaces, and in that of the
// lease, so that the process needs a Role in each and no ClusterRole.
type namespaces []string

// set parses a comma-separated list. It returns an error if the list is empty, which a template
// may contain by mistake and which would otherwise mean all namespaces, and for an invalid name,
// or one that occurs twice.
func (n *namespaces) set(value string) error {
	if value == "" {
		return errors.New("it is empty: leave out the flag to reconcile the objects of all namespaces")
	}
	var parsed namespaces
	for name := range strings.SplitSeq(value, ",") {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return fmt.Errorf("%q is not the name of a namespace: %s", name, strings.Join(problems, "; "))
		}
		if slices.Contains(parsed, name) {
			return fmt.Errorf("%q occurs twice", name)
		}
		parsed = append(parsed, name)
	}
	*n = parsed
	return nil
}

// cache returns the options of a cache of these namespaces.
func (n namespaces) cache() ctrlcache.Options {
	var options ctrlcache.Options
	for _, name := range n {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]ctrlcache.Config{}
		}
		options.DefaultNamespaces[name] = ctrlcache.Config{}
	}
	return options
}
