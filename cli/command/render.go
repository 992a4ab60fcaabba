// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/lint"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
)

type renderOptions struct {
	Env
	cluster        clusterFlags
	files          fileFlags
	output         string
	fetchImage     string
	defaults, diff bool
}

func newRender(env Env) *cobra.Command {
	o := &renderOptions{Env: env, cluster: newClusterFlags(env)}
	cmd := &cobra.Command{
		Use:     "render -f FILE|FOLDER|- [--defaults | --diff]",
		GroupID: offline,
		Short:   "Show the Deployment, Service or DaemonSet that the operator makes of a manifest",
		Long: `Show the Deployment, Service or DaemonSet that the operator makes of a manifest, as the operator sends them to the
API server. With --defaults, show the object itself as it would be stored. No cluster is used, except by --diff.
Objects of other kinds are passed over; UnitedDeployments and Erus have no children.

The controller reference of a child has the uid of its owner. It is that of metadata.uid, which a file usually
does not have: then it is empty.

With --diff, show how the children in the cluster would change, by a server-side dry run in the name of the
operator. It needs permission to patch Deployments, Services and DaemonSets.

The container that fetches the model of a ModelBox has the image of --fetch-image, which is a flag of the controller,
too. With --diff it keeps the image and the mirrors of the Deployment in the cluster, if its pods fetch a model.

Exit codes: 0; 1 if a manifest has errors (see lint), or if --diff finds a difference; 3 if --diff cannot run.`,
		Example: example(`
			# The children of a ModelBox
			{} render -f modelbox.yaml

			# The ModelBox with its defaults
			{} render -f modelbox.yaml --defaults

			# What an apply would change in the cluster
			{} render -f modelbox.yaml --diff -n serving`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.files.bind(cmd)
	o.cluster.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.defaults, "defaults", false, "show the objects themselves, with their defaults")
	cmd.Flags().BoolVar(&o.diff, "diff", false, "show the differences from the children in the cluster")
	cmd.Flags().StringVar(&o.fetchImage, "fetch-image", version.ControllerImage, "image of the init container that fetches the model of a ModelBox")
	bindOutput(cmd, &o.output, "yaml", "json")
	cmd.MarkFlagsMutuallyExclusive("defaults", "diff")
	return cmd
}

func (o *renderOptions) run(ctx context.Context) error {
	objects, err := o.read()
	if err != nil {
		return err
	}
	if o.diff {
		different, err := o.diffAll(ctx, objects)
		switch {
		case err != nil:
			return &exitError{exitFailed, err}
		case different:
			return &exitError{code: exitNo}
		}
		return nil
	}
	var out []client.Object
	for _, object := range objects {
		if o.defaults {
			object.Stored.SetUID(object.uid)
			out = append(out, object.Stored)
			continue
		}
		children, err := object.Children(object.uid)
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

// rendered is an object of a file, with the uid that it has there.
type rendered struct {
	render.Object
	uid types.UID
}

// read reads the files. Errors of their objects are printed as by lint.
func (o *renderOptions) read() ([]rendered, error) {
	if len(o.files.names) == 0 {
		return nil, errors.New("name what to render: -f FILE, -f FOLDER, or -f - for the standard input")
	}
	docs, err := manifest.Read(o.files.names, o.files.recursive, o.In)
	if err != nil {
		return nil, err
	}
	flag := *o.cluster.Namespace // That of the context is for --diff.
	found, _ := lint.Check(docs, cmp.Or(flag, metav1.NamespaceDefault), metav1.FieldValidationStrict)
	if failures, _ := lint.Count(found); failures > 0 {
		if err := lint.Write(o.ErrOut, "text", found, ""); err != nil {
			return nil, err
		}
		return nil, errors.New("nothing is rendered, because the API server would refuse the manifests")
	}
	var out []rendered
	for i := range docs {
		doc := &docs[i]
		kind := kinds.Of(doc.GVK.GroupKind())
		if kind == nil {
			continue
		}
		namespace := cmp.Or(doc.Namespace, flag)
		resp := create.Dry(kind, create.Request{
			Body: doc.Data, YAML: doc.YAML, Namespace: cmp.Or(namespace, metav1.NamespaceDefault), Validation: metav1.FieldValidationStrict,
		})
		if err := resp.Err(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", doc.File, doc.Line, err)
		}
		object := render.New(kind, resp.Object, namespace)
		object.Fetcher.Image = o.fetchImage
		out = append(out, rendered{object, types.UID(doc.UID)})
	}
	return out, nil
}
