// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/internal/version"
)

type versionOptions struct {
	Env
	cluster           clusterFlags
	clientOnly        bool
	operator, output  string
	processesDeadline time.Duration
}

func newVersion(env Env) *cobra.Command {
	o := &versionOptions{Env: env, cluster: newClusterFlags(env), processesDeadline: 5 * time.Second}
	cmd := &cobra.Command{
		Use:     "version",
		GroupID: online,
		Short:   "Show the versions of this command and of the operator's processes",
		Long: `Show the versions of this command and of both processes of the operator. Those of the processes are the labels
app.kubernetes.io/version of the Deployments modelbox-webhook and modelbox-controller, or without them the tags of
their images. If they cannot be read, the reason is shown in their place, and the exit code is still 0.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.cluster.bind(cmd)
	cmd.Flags().BoolVar(&o.clientOnly, "client", false, "show the version of this command only, without a cluster")
	cmd.Flags().StringVar(&o.operator, "operator-namespace", "modelbox-system", "namespace of the operator")
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", "output format: text, json or yaml")
	complete(cmd, "output", "text", "json", "yaml")
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
		ctx, cancel := context.WithTimeout(ctx, o.processesDeadline)
		defer cancel()
		out.Processes = o.processes(ctx)
	}
	return o.print(&out)
}

// processes returns both processes, with an error where one cannot be read.
func (o *versionOptions) processes(ctx context.Context) []process {
	out := []process{{Name: "modelbox-webhook"}, {Name: "modelbox-controller"}}
	c, err := o.cluster.client()
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
		p.set(deployment)
	}
	return out
}

// versionLabel is the label with the version of an installed object.
const versionLabel = "app.kubernetes.io/version"

// set sets the image and the version of a process.
func (p *process) set(deployment *appsv1.Deployment) {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		p.Image = container.Image
		break
	}
	p.Version = cmp.Or(deployment.Labels[versionLabel], tagOf(p.Image))
}

// tagOf returns the tag of an image, or its digest if it has none.
func tagOf(image string) string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "unknown"
	}
	if tagged, ok := named.(reference.Tagged); ok {
		return tagged.Tag()
	}
	if digested, ok := named.(reference.Digested); ok {
		return digested.Digest().String()
	}
	return "latest"
}

func (o *versionOptions) print(out *versions) error {
	var text []byte
	var err error
	switch o.output {
	case "json":
		text, err = json.MarshalIndent(out, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(out)
	case "text":
		text = []byte(out.text())
	default:
		err = fmt.Errorf("unknown output format %q: use text, json or yaml", o.output)
	}
	if err == nil {
		_, err = o.Out.Write(text)
	}
	return err
}

func (v *versions) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "modelbox: %s\n", v.Client)
	for _, p := range v.Processes {
		if p.Error != "" {
			fmt.Fprintf(&b, "%s: unknown (%s)\n", p.Name, p.Error)
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", p.Name, p.Version)
	}
	return b.String()
}
