// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
)

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
