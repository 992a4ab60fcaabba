// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/lint"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
)

// fileFlags name the files that a command reads.
type fileFlags struct {
	names     []string
	recursive bool
}

func (f *fileFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&f.names, "filename", "f", nil, "file or folder with manifests, or - for the standard input")
	cmd.Flags().BoolVarP(&f.recursive, "recursive", "R", false, "search the folders below those of -f as well")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json") // The flag exists.
}

// read returns the objects in the files, for what a command does. What is passed over, because it
// is no object, is printed.
func (f *fileFlags) read(env *Env, does string) ([]manifest.Document, error) {
	docs, err := f.documents(env, does)
	if err == nil {
		err = nothing(docs)
	}
	for i := range docs {
		if err == nil && lint.IsNone(&docs[i]) {
			fmt.Fprintf(env.ErrOut, "%s:%d: note: %s\n", docs[i].File, docs[i].Line, lint.None)
		}
	}
	return docs, err
}

func (f *fileFlags) documents(env *Env, does string) ([]manifest.Document, error) {
	if len(f.names) == 0 {
		return nil, usage("name what to %s: -f FILE, -f FOLDER, or -f - for the standard input", does)
	}
	docs, err := manifest.Read(f.names, f.recursive, env.In)
	if err != nil {
		return nil, usage("%w", err)
	}
	return docs, nil
}

// nothing returns an error if documents have neither an object of the five kinds nor one of a kind
// that is passed over.
func nothing(docs []manifest.Document) error {
	why := errors.New("there is no Kubernetes object in the input")
	for i := range docs {
		if _, err := kinds.Match(docs[i].Object.GroupVersionKind()); err != nil {
			why = err
		} else if !lint.IsNone(&docs[i]) {
			return nil
		}
	}
	return usage("nothing was read: %w", why)
}

type lintOptions struct {
	Env
	files             fileFlags
	sizes             sizesFlag
	output, namespace string
	strict            bool
}

func newLint(env Env) *cobra.Command {
	o := &lintOptions{Env: env}
	cmd := &cobra.Command{
		Use:     "lint [-f FILE|FOLDER|-]... [FILE]...",
		GroupID: offline,
		Short:   "Find what the API server would refuse, without a cluster",
		Long: `Find what the API server and the operator's webhooks would refuse in manifests of the five kinds, and what they
would warn of: unknown and duplicate fields, the schema, and the operator's own rules, all errors at once, with their
paths and lines. More than ten scheduled times in one minute of a namespace are a warning. No cluster and no network is
used, so it runs in pre-commit hooks and in CI.

Objects of other kinds are passed over, but the access modes of claims count; what is no object is noted. What only a cluster knows is not checked: other webhooks, policies,
quotas, permissions, and names that are taken.

Exit codes: 0 without errors, 1 with errors (or with warnings if --strict is set), 3 if it cannot run, or nothing was read.`,
		Example: `  # Check a file, a folder with those below it, or the output of another command
  {} lint -f modelbox.yaml
  {} lint -R -f deploy/
  kustomize build . | {} lint -f -

  # Check the sizes of the cluster, and manifests with them
  {} lint --sizes sizes.yaml -f modelbox.yaml

  # For a machine, and with the exit code 1 on warnings
  {} lint -R -f deploy/ -o json --strict`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args) },
	}
	o.files.bind(cmd)
	o.sizes.bind(cmd)
	bindOutput(cmd, &o.output, "text", "json", "yaml")
	cmd.Flags().BoolVar(&o.strict, "strict", false, "exit with code 1 on warnings as well")
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", metav1.NamespaceDefault, "namespace of the objects that name none")
	return cmd
}

func (o *lintOptions) run(args []string) error {
	docs, sizes, err := o.read(args)
	if err != nil {
		return err
	}
	found, checked := lint.Check(docs, o.namespace, sizes)
	if err == nil {
		err = o.print(o.output, found, func(w io.Writer) error { return lint.Write(w, found) })
	}
	if err != nil {
		return usage("%w", err)
	}
	counts := lint.Count(found)
	failures, warnings := counts[lint.Error], counts[lint.Warning]
	if o.output == "text" {
		fmt.Fprintf(o.ErrOut, "%s checked: %s, %s\n", counted(len(checked), "object"), counted(failures, "error"), counted(warnings, "warning"))
	}
	if err := nothing(docs); err != nil && len(o.files.names) > 0 {
		return err
	}
	if failures > 0 || o.strict && warnings > 0 {
		return exitError{Code: exitNo}
	}
	return nil
}

// read returns the objects in the files, and the sizes, which may be checked alone.
func (o *lintOptions) read(args []string) (docs []manifest.Document, sizes modelbox.Sizes, err error) {
	if sizes, err = o.sizes.read(); err != nil {
		return nil, nil, usage("%w", err)
	}
	if o.files.names = append(o.files.names, args...); len(o.files.names) > 0 || sizes == nil {
		docs, err = o.files.documents(&o.Env, "check")
	}
	return docs, sizes, err
}

// counted returns a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
