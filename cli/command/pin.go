// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
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
		Short:   "Pin models in manifests to a commit and SHA-256",
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
		docs := manifest.Parse(name, data)
		if err := nothing(docs); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, doc := range docs {
			more, ok := o.document(ctx, &doc, data)
			edits, pinned = append(edits, more...), pinned && ok
		}
		if len(edits) == 0 {
			continue
		}
		if err := replace(name, manifest.Apply(data, edits)); err != nil {
			return err
		}
	}
	if !pinned {
		return exitError{Code: exitNo}
	}
	return nil
}

// replace writes a file as a whole or not at all: beside it first. It keeps the mode of the file,
// and a symbolic link.
func replace(name string, content []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	before, err := os.Stat(name)
	if err != nil {
		return err
	}
	beside, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(beside.Name()) //nolint:errcheck // It is gone once it is renamed.
	_, err = beside.Write(content)
	if err := errors.Join(err, beside.Chmod(before.Mode().Perm()), beside.Sync(), beside.Close()); err != nil {
		return err
	}
	return os.Rename(beside.Name(), name)
}
