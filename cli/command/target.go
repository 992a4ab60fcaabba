// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
)

// target is the object that a command works with.
type target struct {
	kind   *kinds.Kind
	key    client.ObjectKey
	client client.WithWatch
}

// String returns the target as a user names it.
func (t *target) String() string { return t.kind.Singular() + "/" + t.key.Name }

// get reads the object, or one of the same name.
func (t *target) get(ctx context.Context, into client.Object) error {
	return t.client.Get(ctx, t.key, into)
}

// target returns the object that KIND/NAME, or KIND and NAME, name.
func (f clusterFlags) target(args []string) (*target, error) {
	kind, name, err := parseReference(args)
	if err != nil {
		return nil, err
	}
	namespace, err := f.namespace()
	if err != nil {
		return nil, err
	}
	c, err := f.client()
	if err != nil {
		return nil, err
	}
	return &target{kind, client.ObjectKey{Namespace: namespace, Name: name}, c}, nil
}

func parseReference(args []string) (*kinds.Kind, string, error) {
	words := args
	if len(args) == 1 {
		words = strings.SplitN(args[0], "/", 2)
	}
	if len(words) != 2 || words[0] == "" || words[1] == "" {
		return nil, "", fmt.Errorf("%q names no object: write KIND/NAME, such as modelbox/web", strings.Join(args, " "))
	}
	kind, err := kinds.Find(words[0])
	return kind, words[1], err
}

// bindWithoutShorthand adds the flags to a command in which -n is something else.
func (f clusterFlags) bindWithoutShorthand(cmd *cobra.Command) {
	namespace := f.Namespace
	f.Namespace = nil
	f.AddFlags(cmd.Flags())
	f.Namespace = namespace
	cmd.Flags().StringVar(namespace, "namespace", *namespace, "If present, the namespace scope for this CLI request")
}

// completionTimeout is how long a shell waits for the names of objects.
const completionTimeout = 3 * time.Second

// completeNames lets the shell complete KIND/NAME, and KIND NAME, of the kinds that a command
// is for.
func (f clusterFlags) completeNames(is func(*kinds.Kind) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		name, prefix, slash := strings.Cut(typed, "/")
		switch {
		case len(args) == 0 && !slash:
			return kindsWithSlash(is), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		case len(args) == 1 && !strings.Contains(args[0], "/"):
			return f.names(cmd.Context(), args[0], "", typed), cobra.ShellCompDirectiveNoFileComp
		case len(args) == 0:
			return f.names(cmd.Context(), name, name+"/", prefix), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func kindsWithSlash(is func(*kinds.Kind) bool) []string {
	var out []string
	for _, kind := range kinds.All {
		if is(kind) {
			out = append(out, kind.Singular()+"/")
		}
	}
	return out
}

// names returns the names of a kind's objects in the namespace that begin with a prefix.
// Without a cluster there are none.
func (f clusterFlags) names(ctx context.Context, kindName, before, prefix string) []string {
	kind, err := kinds.Find(kindName)
	if err != nil {
		return nil
	}
	namespace, err := f.namespace()
	if err != nil {
		return nil
	}
	c, err := f.client()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	all, err := namesOf(ctx, c, kind, namespace)
	if err != nil {
		return nil
	}
	var out []string
	for _, name := range all {
		if strings.HasPrefix(name, prefix) {
			out = append(out, before+name)
		}
	}
	return out
}
