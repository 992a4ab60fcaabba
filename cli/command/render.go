// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/lint"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

type renderOptions struct {
	Env
	files                         fileFlags
	sizes                         sizesFlag
	output, namespace, fetchImage string
	defaults                      bool
}

func newRender(env Env) *cobra.Command {
	o := &renderOptions{Env: env}
	cmd := &cobra.Command{
		Use:     "render -f FILE|FOLDER|- [--defaults]",
		GroupID: offline,
		Short:   "Print the children that the operator makes of a manifest",
		Long: `Print the children that the operator makes of a manifest, as the operator sends them to the
API server. With --defaults, show the object itself as it would be stored. No cluster is used: plan shows what an apply
would change in one. Objects of other kinds are passed over; UnitedDeployments and Erus have no children.

The controller reference of a child has the uid of its owner. It is that of metadata.uid, which a file usually
does not have: then it is empty.

The container that fetches the model of a ModelBox has the image of --fetch-image, which is a flag of the controller, too.

Of spec.schedules, the number applies whose time has passed last.

Exit codes: 0; 1 if a manifest has errors (see lint); 3 if it cannot run, or nothing was read.`,
		Example: `  # The children of a ModelBox
  {} render -f modelbox.yaml

  # The ModelBox with its defaults
  {} render -f modelbox.yaml --defaults`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	o.files.bind(cmd)
	o.sizes.bind(cmd)
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "namespace of the objects that name none")
	cmd.Flags().BoolVar(&o.defaults, "defaults", false, "show the objects themselves, with their defaults")
	cmd.Flags().StringVar(&o.fetchImage, "fetch-image", version.ControllerImage, "image of the init container that fetches the model of a ModelBox")
	bindOutput(cmd, &o.output, "yaml", "json")
	return cmd
}

func (o *renderOptions) run() error {
	objects, err := o.read()
	if err != nil {
		return err
	}
	var out []client.Object
	for _, object := range objects {
		if o.defaults {
			out = append(out, object.Stored)
			continue
		}
		render.Schedule(object.Stored, o.Clock.Now())
		children, err := render.Children(object.Kind, object.Stored, models.Fetcher{Image: o.fetchImage})
		if err != nil {
			return err
		}
		out = append(out, children...)
	}
	for _, object := range out {
		if o.output == "yaml" {
			fmt.Fprintln(o.Out, "---")
		}
		if err := o.print(o.output, object, nil); err != nil {
			return err
		}
	}
	return nil
}

// read reads the files. Errors of their objects are printed as by lint.
func (o *renderOptions) read() ([]lint.Object, error) {
	docs, err := o.files.read(&o.Env, "render")
	if err != nil {
		return nil, err
	}
	sizes, err := o.sizes.read()
	if err != nil {
		return nil, usage("%w", err)
	}
	found, checked := lint.Check(docs, cmp.Or(o.namespace, metav1.NamespaceDefault), sizes)
	if lint.Count(found)[lint.Error] > 0 {
		if err := lint.Write(o.ErrOut, found); err != nil {
			return nil, err
		}
		return nil, errors.New("nothing is rendered, because the API server would refuse the manifests")
	}
	for _, c := range checked {
		if c.Stored == nil {
			return nil, usage("%s:%d: the values of a size of the cluster are not known: name its file with --sizes", c.File, c.Line)
		}
		c.Stored.SetNamespace(cmp.Or(c.Object.GetNamespace(), o.namespace))
		c.Stored.SetUID(c.Object.GetUID())
	}
	return checked, nil
}
