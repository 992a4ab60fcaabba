// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command has the commands of modelbox: their flags, and what they read and write.
// What they compute is in the other packages of cli.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"
)

// Env is the environment of the process.
type Env struct {
	genericiooptions.IOStreams
	// Program is the path by which it was called.
	Program string
	Clock   clock.PassiveClock
	// Client is used instead of one for the kubeconfig, if it is set.
	Client client.WithWatch
	// HTTP asks the servers of models instead of http.DefaultClient, if it is set.
	HTTP *http.Client
	// Interactive says that the standard input is a terminal: then the user can be asked.
	Interactive bool
}

// The exit codes. Each command documents those that it has.
const (
	// exitNo is a negative result, such as a manifest with errors, and any error without another
	// code.
	exitNo = 1
	// exitTimeout is that a result was waited for too long.
	exitTimeout = 2
	// exitFailed is a wrong usage, nothing that could be read, and an error of lint and plan, of
	// which exitNo is a result.
	exitFailed = 3
)

// exitError is an error with an exit code. One without Err prints nothing.
type exitError = exec.CodeExitError

// usage returns an error of wrong arguments or flags.
func usage(format string, args ...any) error {
	return exitError{Code: exitFailed, Err: fmt.Errorf(format, args...)}
}

// Run runs the command with its arguments, and returns its exit code.
func Run(env Env, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The webhooks' handlers and the clients log; what matters is in errors.
	log.SetLogger(klog.Logger{})
	klog.SetLogger(klog.Logger{})
	if env.Clock == nil {
		env.Clock = clock.RealClock{}
	}
	root, code := New(env), exitFailed
	for _, cmd := range root.Commands() {
		run := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			code = exitNo // An error before was one of the arguments and the flags.
			return run(cmd, args)
		}
	}
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[exitError](err)
	if !ok {
		exit = exitError{Code: code, Err: err}
	}
	if exit.Err != nil {
		fmt.Fprintln(env.ErrOut, "error:", exit.Err)
	}
	return exit.Code
}

// New returns the command with all others below it.
func New(env Env) *cobra.Command {
	name := "modelbox"
	if strings.HasPrefix(filepath.Base(env.Program), "kubectl-") { // kubectl finds its plug-ins by name.
		name = "kubectl modelbox"
	}
	root := &cobra.Command{
		Use:           "modelbox",
		Short:         "Work with the objects of the ModelBox Operator",
		Long:          "Check, show and operate the objects of the ModelBox Operator: ModelBoxes, Apps, Genericdaemons,\nUnitedDeployments and Erus.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.ErrOut)
	root.AddGroup(&cobra.Group{ID: offline, Title: "Without a cluster:"}, &cobra.Group{ID: online, Title: "With the cluster of the kubeconfig:"})
	for _, add := range commands {
		cmd := add(env)
		cmd.Long, cmd.Example = strings.ReplaceAll(cmd.Long, "{}", name), strings.ReplaceAll(cmd.Example, "{}", name)
		root.AddCommand(cmd)
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see '%s --help'", err, cmd.CommandPath())
	})
	return root
}

// The groups of commands in the help text.
const (
	offline = "offline"
	online  = "online"
)

var commands = []func(Env) *cobra.Command{
	newLint, newRender, newNext, newPlan, newPin, newAdopt,
	newStatus, newRestart, newPause, newResume, newSizes, newResize, newRollout, newHistory, newUndo, newVersion,
}

// bindOutput adds the flag --output.
func bindOutput(cmd *cobra.Command, output *string, formats ...string) {
	cmd.Flags().StringVarP(output, "output", "o", formats[0], "output format: one of "+strings.Join(formats, ", "))
	complete(cmd, "output", formats...)
}

// complete lets the shell complete a flag with values.
func complete(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // The flag exists.
}

// print writes a value as JSON, as YAML, or, if there is one, as a text.
func (e *Env) print(format string, value any, text func(io.Writer) error) error {
	switch {
	case format == "json":
		encoder := json.NewEncoder(e.Out)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	case format == "yaml":
		data, err := yaml.Marshal(value)
		if err == nil {
			_, err = e.Out.Write(data)
		}
		return err
	case (format == "text" || format == "table") && text != nil:
		return text(e.Out)
	}
	return usage("unknown output format %q; see --help", format)
}
