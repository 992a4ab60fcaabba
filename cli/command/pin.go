// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
	"github.com/modelbox-operator/modelbox-operator/cli/pin"
)

type pinOptions struct {
	Env
	files []string
	check bool
}

func newPin(env Env) *cobra.Command {
	o := &pinOptions{Env: env}
	cmd := &cobra.Command{
		Use:     "pin -f FILE [--check]",
		GroupID: offline,
		Short:   "Write into manifests which bytes their models are",
		Long: `Write into the manifests of ModelBoxes what decides the bytes of their models: for hf:// the commit of a branch or a
tag, for https:// the SHA-256 of the file, which is read for it, and a sizeLimit that fits. Comments and the order of the
fields stay. A model that has all of it is not asked for, so a second run changes nothing.

HF_ENDPOINT is another hub. HF_TOKEN is sent to the hub, and MODEL_TOKEN to the servers of https://.

Exit codes: 0 if all models are pinned, 1 if --check finds one that is not, or if one cannot be pinned.`,
		Example: `  # Pin the models of a file, and fail in CI where one is not pinned
  {} pin -f modelbox.yaml
  {} pin -f modelbox.yaml --check`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "file with manifests; may be repeated")
	cmd.Flags().BoolVar(&o.check, "check", false, "change nothing and send no requests; exit with code 1 if a model is not pinned")
	_ = cmd.MarkFlagRequired("filename")                        // The flag exists.
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json") // The flag exists.
	return cmd
}

func (o *pinOptions) run(ctx context.Context) error {
	pinned := true
	for _, name := range o.files {
		data, err := os.ReadFile(name) //nolint:gosec // The user names the file.
		if err != nil {
			return err
		}
		var edits []manifest.Edit
		for _, doc := range manifest.Parse(name, data) {
			more, ok := o.document(ctx, &doc, data)
			edits, pinned = append(edits, more...), pinned && ok
		}
		if len(edits) == 0 {
			continue
		}
		// It keeps the mode of the file, and a symbolic link.
		if err := os.WriteFile(name, manifest.Apply(data, edits), 0o600); err != nil { //nolint:gosec // The user names the file.
			return err
		}
	}
	if !pinned {
		return exitError{Code: exitNo}
	}
	return nil
}

// document returns the edits that pin the models of a document, and whether all are pinned with them.
func (o *pinOptions) document(ctx context.Context, doc *manifest.Document, data []byte) (edits []manifest.Edit, pinned bool) {
	box := &modelv1.ModelBox{}
	if doc.Object.GroupVersionKind() != kinds.ModelBox().GVK && doc.Err == nil {
		return nil, true
	}
	if err := cmp.Or(doc.Err, create.Into(doc.Object, box)); err != nil {
		fmt.Fprintf(o.ErrOut, "%s:%d: %v\n", doc.File, doc.Line, err)
		return nil, false
	}
	pinned = true
	one := func(path string, m *modelv1.Model) {
		more, err := o.model(ctx, doc, data, path, m)
		if err != nil {
			fmt.Fprintf(o.ErrOut, "%s:%d: %s: %v\n", doc.File, doc.LineOf(path), path, err)
		}
		edits, pinned = append(edits, more...), pinned && err == nil
	}
	switch m := box.Spec.Model; {
	case m != nil && m.URI != "":
		one("spec.model.uri", m)
	case box.Spec.ModelFileURL != "":
		alias := ptr.Deref(m, modelv1.Model{})
		alias.URI = box.Spec.ModelFileURL
		one("spec.modelFileURL", &alias)
	}
	for i := range box.Spec.Models {
		one(fmt.Sprintf("spec.models[%d].uri", i), &box.Spec.Models[i].Model)
	}
	return edits, pinned
}

// model returns the edits that pin one model.
func (o *pinOptions) model(ctx context.Context, doc *manifest.Document, data []byte, path string, m *modelv1.Model) ([]manifest.Edit, error) {
	missing, err := pin.Missing(m)
	switch {
	case err != nil || len(missing) == 0:
		return nil, err
	case o.check:
		return nil, fmt.Errorf("is not pinned: %s; run 'modelbox pin -f %s'", strings.Join(missing, ", "), doc.File)
	case !strings.HasSuffix(path, ".uri"):
		return nil, errors.New("is an alias; write it as spec.model.uri")
	}
	fmt.Fprintf(o.ErrOut, "%s:%d: asking for %s\n", doc.File, doc.LineOf(path), m.URI)
	client := pin.Client{HTTP: cmp.Or(o.HTTP, http.DefaultClient), Getenv: os.Getenv}
	now, err := client.Resolve(ctx, *m)
	if err != nil {
		return nil, err
	}
	var fields []manifest.Field
	for _, f := range [...]struct{ name, before, now string }{
		{"uri", m.URI, now.URI}, {"sha256", m.SHA256, now.SHA256}, {"sizeLimit", quantity(m), quantity(now)},
	} {
		if f.before != f.now {
			fields = append(fields, manifest.Field{Name: f.name, Value: f.now})
		}
	}
	return doc.Set(data, path, fields...)
}

func quantity(m *modelv1.Model) string {
	if m.SizeLimit == nil {
		return ""
	}
	return m.SizeLimit.String()
}
