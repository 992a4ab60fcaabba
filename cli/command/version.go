// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/internal/version"
)

// processesTimeout is how long the versions of the processes are waited for.
const processesTimeout = 5 * time.Second

type versionOptions struct {
	clusterFlags
	clientOnly       bool
	operator, output string
}

func newVersion(env Env) *cobra.Command {
	o := &versionOptions{clusterFlags: newClusterFlags(env)}
	cmd := &cobra.Command{
		Use:     "version",
		GroupID: online,
		Short:   "Show the versions of this command and of the operator's processes",
		Long: `Show the versions of this command and of both processes of the operator. Those of the processes are the labels
app.kubernetes.io/version of the Deployments modelbox-webhook and modelbox-controller, or without them their images. If they cannot be read, the reason is shown in their place, and the exit code is still 0.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.clientOnly, "client", false, "show the version of this command only, without a cluster")
	cmd.Flags().StringVar(&o.operator, "operator-namespace", "modelbox-system", "namespace of the operator")
	bindOutput(cmd, &o.output, "text", "json", "yaml")
	return cmd
}

// process is one of the operator's processes.
type process struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Image   string `json:"image,omitempty"`
	Error   string `json:"error,omitempty"`
}

type versions struct {
	Client    string    `json:"client"`
	Processes []process `json:"processes,omitempty"`
}

func (o *versionOptions) run(ctx context.Context) error {
	out := versions{Client: version.Version}
	if !o.clientOnly {
		ctx, cancel := context.WithTimeout(ctx, processesTimeout)
		defer cancel()
		out.Processes = o.processes(ctx)
	}
	return o.print(o.output, out, out.text)
}

// processes returns both processes, with an error where one cannot be read.
func (o *versionOptions) processes(ctx context.Context) []process {
	out := []process{{Name: "modelbox-webhook"}, {Name: "modelbox-controller"}}
	c, err := o.client()
	for i := range out {
		p := &out[i]
		deployment := &appsv1.Deployment{}
		err := err
		if err == nil {
			err = c.Get(ctx, client.ObjectKey{Namespace: o.operator, Name: p.Name}, deployment)
		}
		if err != nil {
			p.Error = err.Error()
			continue
		}
		p.Image = deployment.Spec.Template.Spec.Containers[0].Image
		p.Version = cmp.Or(deployment.Labels["app.kubernetes.io/version"], p.Image)
	}
	return out
}

func (v versions) text(w io.Writer) error {
	fmt.Fprintf(w, "modelbox: %s\n", v.Client)
	for _, p := range v.Processes {
		if p.Error != "" {
			p.Version = "unknown (" + p.Error + ")"
		}
		fmt.Fprintf(w, "%s: %s\n", p.Name, p.Version)
	}
	return nil
}
