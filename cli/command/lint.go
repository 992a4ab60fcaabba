// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/cli/lint"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
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

type lintOptions struct {
	Env
	files                       fileFlags
	output, namespace, validate string
	strict                      bool
}

func newLint(env Env) *cobra.Command {
	o := &lintOptions{Env: env}
	cmd := &cobra.Command{
		Use:     "lint [-f FILE|FOLDER|-]... [FILE]...",
		GroupID: offline,
		Short:   "Find what the API server would refuse, without a cluster",
		Long: `Find what the API server and the operator's webhooks would refuse in manifests of the five kinds, and what they
would warn of: unknown and duplicate fields, the schema, and the operator's own rules, all errors at once, with their
paths and lines. No cluster and no network is used, so it runs in pre-commit hooks and in CI.

Objects of other kinds are passed over. What only a cluster knows is not checked: other webhooks, policies,
quotas, permissions, and names that are taken.

Exit codes: 0 without errors, 1 with errors (or with warnings if --strict is set), 3 if it cannot run.`,
		Example: example(`
			# Check a file, a folder with those below it, or the output of another command
			{} lint -f modelbox.yaml
			{} lint -R -f deploy/
			kustomize build . | {} lint -f -

			# Annotate a pull request on GitHub, and fail on warnings
			{} lint -R -f deploy/ -o github --strict`),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args) },
	}
	o.files.bind(cmd)
	bindOutput(cmd, &o.output, lint.Formats...)
	cmd.Flags().BoolVar(&o.strict, "strict", false, "exit with code 1 on warnings as well")
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", metav1.NamespaceDefault, "namespace of the objects that name none")
	cmd.Flags().StringVar(&o.validate, "validate", "strict", "unknown and duplicate fields are errors (strict), warnings (warn), or nothing (ignore), as for kubectl apply")
	complete(cmd, "validate", "strict", "warn", "ignore")
	return cmd
}

func (o *lintOptions) run(args []string) error {
	found, checked, err := o.check(args)
	if err == nil {
		err = lint.Write(o.Out, o.output, found, version.Version)
	}
	if err != nil {
		return &exitError{exitFailed, err}
	}
	failures, warnings := lint.Count(found)
	if o.output == "text" {
		fmt.Fprintf(o.ErrOut, "%s checked: %s, %s\n", counted(checked, "object"), counted(failures, "error"), counted(warnings, "warning"))
	}
	if failures > 0 || o.strict && warnings > 0 {
		return &exitError{code: exitNo}
	}
	return nil
}

func (o *lintOptions) check(args []string) ([]lint.Finding, int, error) {
	validation, err := fieldValidation(o.validate)
	if err != nil {
		return nil, 0, err
	}
	paths := append(o.files.names, args...)
	if len(paths) == 0 {
		return nil, 0, errors.New("name what to check: -f FILE, -f FOLDER, or -f - for the standard input")
	}
	docs, err := manifest.Read(paths, o.files.recursive, o.In)
	if err != nil {
		return nil, 0, err
	}
	found, checked := lint.Check(docs, o.namespace, validation)
	return found, checked, nil
}

// fieldValidation returns the parameter of a request for the flag --validate.
func fieldValidation(flag string) (string, error) {
	for _, value := range []string{metav1.FieldValidationStrict, metav1.FieldValidationWarn, metav1.FieldValidationIgnore} {
		if strings.EqualFold(flag, value) {
			return value, nil
		}
	}
	return "", fmt.Errorf("--validate=%s: use strict, warn or ignore", flag)
}

// counted returns a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
