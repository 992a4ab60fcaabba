// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tour shows the operator's features on a running cluster, step by step, and
// checks the results.
package tour

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Tour is one run of the tour.
type Tour struct {
	// Out is where the output is written, and Colour allows colours in it.
	Out    io.Writer
	Colour bool
	// Kubectl and Kubeconfig are the paths for the commands.
	Kubectl, Kubeconfig string
	// Client reads the objects that are checked.
	Client client.Client
	// Samples is the directory of the sample manifests.
	Samples string
	// FetchModel is the program of the init container that fetches a model.
	FetchModel string
	// AuditLog is the API server's audit log.
	AuditLog string

	step int
	eru  string
}

// stepTimeout is how long a step waits for an expected state.
const stepTimeout = 90 * time.Second

// Run runs all steps. It ends at the first check that fails.
func (t *Tour) Run(ctx context.Context) error {
	for _, step := range []struct {
		title string
		show  func(context.Context) error
	}{
		{"An Eru is created for an annotated Deployment, to restart it at the next minute (step 10 checks that)", t.bindEru},
		{"A ModelBox: the user's spec, and the defaults that admission sets", t.modelbox},
		{"Invalid objects are refused before they are stored, with the field and what to do", t.refusals},
		{"A user may make through a ModelBox only what the user may make without it", t.rights},
		{"The rollout, and scaling the ModelBox itself", t.rollout},
		{"Objects of other owners are never changed; changes of the operator's objects are reverted", t.ownership},
		{"An App, and a Genericdaemon that follows a label from node to node", t.appAndDaemon},
		{"A UnitedDeployment keeps the replicas of a Deployment", t.united},
		{"The model of a ModelBox is fetched and verified before its server starts", t.model},
		{"The Eru has restarted its Deployment at its scheduled time", t.eruRestarts},
		{"All objects are Ready, and an idle controller sends no requests", t.rest},
	} {
		t.step++
		t.line("\n%s", t.bold(fmt.Sprintf("%d. %s", t.step, step.title)))
		if err := step.show(ctx); err != nil {
			return fmt.Errorf("step %d: %w", t.step, err)
		}
	}
	return nil
}

func (t *Tour) line(format string, args ...any) { fmt.Fprintf(t.Out, format+"\n", args...) }

func (t *Tour) bold(s string) string  { return t.paint("1", s) }
func (t *Tour) green(s string) string { return t.paint("32", s) }
func (t *Tour) red(s string) string   { return t.paint("31", s) }

func (t *Tour) paint(code, s string) string {
	if !t.Colour {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// quietly runs kubectl without printing it.
func (t *Tour) quietly(ctx context.Context, stdin string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, t.Kubectl, append([]string{"--kubeconfig", t.Kubeconfig}, args...)...)
	var output bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &output, &output
	err := command.Run()
	return strings.TrimSpace(output.String()), err
}

// kubectl runs a command, and prints the command and its output.
func (t *Tour) kubectl(ctx context.Context, args ...string) (string, error) {
	return t.kubectlOf(ctx, "", args...)
}

// kubectlOf is like kubectl, with a manifest on standard input.
func (t *Tour) kubectlOf(ctx context.Context, stdin string, args ...string) (string, error) {
	t.line("   $ kubectl %s", shellWords(args))
	output, err := t.quietly(ctx, stdin, args...)
	t.indent(output)
	if err != nil {
		return output, fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return output, nil
}

// indent prints output below its command, with long lines wrapped.
func (t *Tour) indent(output string) {
	table := strings.HasPrefix(output, "NAME ")
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, " \n")
		if table {
			t.line("     %s", line)
			continue
		}
		for _, part := range wrap(line, 112) {
			t.line("     %s", part)
		}
	}
}

// refused runs a command that the API server must refuse, prints the error, and checks
// that it contains each of want.
func (t *Tour) refused(ctx context.Context, what, stdin string, args []string, want ...string) error {
	t.line("   %s", what)
	output, err := t.quietly(ctx, stdin, args...)
	if err == nil {
		return fmt.Errorf("%s: it was accepted: %s", what, output)
	}
	t.line("     %s", t.red("refused"))
	t.indent(plain(output))
	for _, part := range want {
		if !strings.Contains(output, part) {
			return fmt.Errorf("%s: the error does not contain %q", what, part)
		}
	}
	return nil
}

// until waits until a check is done, and prints each new state.
func (t *Tour) until(ctx context.Context, what string, check func(context.Context) (state string, done bool)) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	shown := ""
	for {
		state, done := check(ctx)
		if state != shown && state != "" {
			t.indent(state)
			shown = state
		}
		if done {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s, last state %q: %w", what, state, ctx.Err())
		}
	}
}

// check prints a statement, or returns it as an error if it is not true.
func (t *Tour) check(ok bool, format string, args ...any) error {
	statement := fmt.Sprintf(format, args...)
	if !ok {
		return errors.New("this is not true: " + statement)
	}
	t.line("   %s %s", t.green("ok"), statement)
	return nil
}
