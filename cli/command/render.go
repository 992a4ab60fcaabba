// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
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
	o.cluster.bind(cmd)
	cmd.Flags().BoolVar(&o.defaults, "defaults", false, "show the objects themselves, with their defaults")
	cmd.Flags().BoolVar(&o.diff, "diff", false, "show the differences from the children in the cluster")
	cmd.Flags().StringVar(&o.fetchImage, "fetch-image", version.ControllerImage, "image of the init container that fetches the model of a ModelBox")
	cmd.Flags().StringVarP(&o.output, "output", "o", "yaml", "output format: yaml or json")
	cmd.MarkFlagsMutuallyExclusive("defaults", "diff")
	complete(cmd, "output", render.Formats...)
	return cmd
}

func (o *renderOptions) run(ctx context.Context) error {
	objects, err := o.read()
	if err != nil {
		return err
	}
	if o.diff {
		return o.runDiff(ctx, objects)
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
	text, err := render.Encode(o.output, out)
	if err != nil {
		return err
	}
	_, err = o.Out.Write(text)
	return err
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
	if err := o.lint(docs); err != nil {
		return nil, err
	}
	var out []rendered
	for i := range docs {
		if kind := kinds.Of(docs[i].GVK.GroupKind()); kind != nil {
			object, err := o.stored(kind, &docs[i])
			if err != nil {
				return nil, err
			}
			out = append(out, object)
		}
	}
	return out, nil
}

// lint prints the errors in documents, and returns an error if there are some.
func (o *renderOptions) lint(docs []manifest.Document) error {
	found, _ := lint.Check(docs, lint.Options{Namespace: o.namespaceOrDefault(), Validation: metav1.FieldValidationStrict})
	if failures, _ := lint.Count(found); failures == 0 {
		return nil
	}
	if err := lint.Write(o.ErrOut, "text", found, ""); err != nil {
		return err
	}
	return errors.New("nothing is rendered, because the API server would refuse the manifests")
}

// namespaceOrDefault returns the namespace of the flag. That of the context is for --diff.
func (o *renderOptions) namespaceOrDefault() string {
	if o.cluster.given() {
		return *o.cluster.Namespace
	}
	return metav1.NamespaceDefault
}

func (o *renderOptions) stored(kind *kinds.Kind, doc *manifest.Document) (rendered, error) {
	namespace := doc.Namespace
	if namespace == "" && o.cluster.given() {
		namespace = *o.cluster.Namespace
	}
	request := create.Request{Body: doc.Data, YAML: doc.YAML, Namespace: namespace, Validation: metav1.FieldValidationStrict}
	if request.Namespace == "" {
		request.Namespace = o.namespaceOrDefault()
	}
	resp := create.Dry(kind, request)
	if err := resp.Err(); err != nil {
		return rendered{}, fmt.Errorf("%s:%d: %w", doc.File, doc.Line, err)
	}
	object := render.New(kind, resp.Object, namespace)
	object.Fetcher.Image = o.fetchImage
	return rendered{object, types.UID(doc.Text("metadata", "uid"))}, nil
}
