// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tour shows what the operator does, step by step, on a running cluster,
// and checks all that it shows.
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

// Tour is one showing.
type Tour struct {
	// Out gets the story, Colour says whether it may be coloured.
	Out    io.Writer
	Colour bool
	// Kubectl and Kubeconfig are what a person would type with.
	Kubectl, Kubeconfig string
	// Client reads what is checked.
	Client client.Client
	// Samples is the directory of the users' manifests.
	Samples string
	// AuditLog is where the API server writes down who asked what.
	AuditLog string

	step int
	eru  string
}

// patience is how long a step waits for what it shows.
const patience = time.Minute

// Run shows everything. It ends at the first thing that is not as it should be.
func (t *Tour) Run(ctx context.Context) error {
	for _, step := range []struct {
		title string
		show  func(context.Context) error
	}{
		{"An annotated Deployment gets its Eru, which is to restart it at the next minute (step 8 looks)", t.bindEru},
		{"A ModelBox: what a person wrote, and what admission filled in", t.modelbox},
		{"What cannot work is refused before it is stored, with the field and the way out", t.refusals},
		{"The rollout, and scaling the ModelBox itself", t.rollout},
		{"What is not ours is never touched; what is ours is repaired", t.ownership},
		{"An App, and a Genericdaemon that follows a label from node to node", t.appAndDaemon},
		{"A UnitedDeployment holds a count", t.united},
		{"The Eru has restarted its Deployment at its minute", t.eruRestarts},
		{"All of it, and the silence of a controller at rest", t.rest},
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

// quietly runs kubectl without showing it.
func (t *Tour) quietly(ctx context.Context, stdin string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, t.Kubectl, append([]string{"--kubeconfig", t.Kubeconfig}, args...)...)
	var output bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = strings.NewReader(stdin), &output, &output
	err := command.Run()
	return strings.TrimSpace(output.String()), err
}

// kubectl shows a command as a person types it, and its output.
func (t *Tour) kubectl(ctx context.Context, args ...string) (string, error) {
	return t.kubectlOf(ctx, "", args...)
}

// kubectlOf is kubectl with a manifest on its standard input.
func (t *Tour) kubectlOf(ctx context.Context, stdin string, args ...string) (string, error) {
	t.line("   $ kubectl %s", strings.Join(args, " "))
	output, err := t.quietly(ctx, stdin, args...)
	t.indent(output)
	if err != nil {
		return output, fmt.Errorf("kubectl %s: %w", strings.Join(args, " "), err)
	}
	return output, nil
}

// indent shows output below its command, with long lines wrapped.
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

// refused shows that the API server refuses a manifest or a command, in its own
// words, and checks that they have each of want.
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
			return fmt.Errorf("%s: the refusal does not say %q", what, part)
		}
	}
	return nil
}

// until waits for something to be so, and shows each new state on the way.
func (t *Tour) until(ctx context.Context, what string, look func(context.Context) (state string, so bool)) error {
	ctx, cancel := context.WithTimeout(ctx, patience+patience/2)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	shown := ""
	for {
		state, so := look(ctx)
		if state != shown && state != "" {
			t.indent(state)
			shown = state
		}
		if so {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waited for %s, and saw %q: %w", what, state, ctx.Err())
		}
	}
}

// check ends the tour if something is not so.
func (t *Tour) check(so bool, format string, args ...any) error {
	statement := fmt.Sprintf(format, args...)
	if !so {
		return errors.New("it should be so, and is not: " + statement)
	}
	t.line("   %s %s", t.green("ok"), statement)
	return nil
}
