// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/hack/local/cluster"
	"github.com/modelbox-operator/modelbox-operator/hack/local/install"
	"github.com/modelbox-operator/modelbox-operator/hack/local/target"
)

const (
	localEnv   = "LOCAL"
	contextEnv = "CONTEXT"

	// answerWithin bounds the first requests to the cluster of a context.
	answerWithin = 10 * time.Second
)

// shared is the cluster of a context of the user's kubeconfig.
type shared struct {
	*target.Cluster
	config *rest.Config
	// different are the CRDs that are not those of this clone.
	different []string
}

// choose selects the cluster to run against and says which one it is. It returns nil for the
// local cluster.
func (l local) choose(ctx context.Context) (*shared, error) {
	request, err := requested()
	if err != nil {
		return nil, err
	}
	var kubeconfig target.Kubeconfig
	if request.Local == "" {
		if kubeconfig, err = target.Load(l.cluster.Kubeconfig); err != nil {
			return nil, err
		}
	}
	choice, err := target.Choose(request, kubeconfig)
	if err != nil {
		return nil, err
	}
	if choice.Ask {
		if choice, err = l.permission(ctx, choice); err != nil {
			return nil, err
		}
	}
	found := &shared{Cluster: choice.Cluster}
	if choice.Cluster != nil {
		missing, failed := l.inspect(ctx, kubeconfig, found)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if choice, err = choice.Checked(missing, failed); err != nil {
			return nil, err
		}
	}
	return l.announce(choice, found), nil
}

// requested returns what the environment selects.
func requested() (target.Request, error) {
	request := target.Request{Context: os.Getenv(contextEnv)}
	if name := os.Getenv(cluster.NameEnv); name != "" {
		request.Local = cluster.NameEnv + "=" + target.Quote(name)
	}
	value := os.Getenv(localEnv)
	if value == "" {
		return request, nil
	}
	selected, err := strconv.ParseBool(value)
	if err != nil {
		return request, fmt.Errorf("%s is %q: set it to true or false", localEnv, value)
	}
	if selected {
		request.Local = localEnv + "=" + value
	}
	return request, nil
}

// permission asks the user whether a cluster that is not on this host may be used.
func (l local) permission(ctx context.Context, choice target.Choice) (target.Choice, error) {
	if l.ask == nil {
		return choice.Answered(false, false)
	}
	yes, err := l.ask(ctx, fmt.Sprintf("Use %s, which is not on this host?", choice.Cluster))
	if err != nil {
		return choice, err
	}
	return choice.Answered(true, yes)
}

// inspect sends the first requests to the cluster of a context: it returns the CRDs that are
// missing there, and completes found.
func (l local) inspect(ctx context.Context, kubeconfig target.Kubeconfig, found *shared) (missing []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if found.config, err = kubeconfig.RESTConfig(found.Context); err != nil {
		return nil, err
	}
	bounded := rest.CopyConfig(found.config)
	bounded.Timeout = answerWithin // Discovery has no context.
	c, err := client.New(bounded, client.Options{})
	if err != nil {
		return nil, err
	}
	crds, err := install.Load(ctx, "", filepath.Join(l.root, "config", "crd", "bases"))
	if err != nil {
		return nil, err
	}
	compared, err := install.CompareCRDs(ctx, c, crds)
	found.different = compared.Different
	return compared.Missing, err
}

// announce says which cluster was chosen. This is the first line that a run prints.
func (l local) announce(choice target.Choice, found *shared) *shared {
	if choice.Cluster == nil {
		l.report.Say("using the local cluster %s, in %s: %s", l.cluster.Name, l.relative(l.cluster.Kubeconfig), choice.Why)
		return nil
	}
	l.report.Say("using %s", choice.Cluster)
	if len(found.different) > 0 {
		l.report.Say("warning: in this cluster, the CRDs %s differ from those of this clone, which 'make install' applies to the cluster of the current context",
			strings.Join(found.different, ", "))
	}
	return found
}

// askOn returns the function that asks the user, or nil without a terminal.
func askOn(in, out *os.File) func(context.Context, string) (bool, error) {
	if os.Getenv("CI") != "" || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return nil
	}
	return func(ctx context.Context, question string) (bool, error) {
		return target.Ask(ctx, io.Reader(in), out, question)
	}
}
