// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
)

// tailLines is how many lines of a failed build's output are in its error.
const tailLines = 20

// goBuild builds t from its pinned module. go.sum verifies the sources, so the result is
// as trustworthy as a verified download.
func goBuild(ctx context.Context, p pins, t tool, dest string, step *progress.Step) error {
	flags := linkerFlags(t, p.version(t.module), originOf(ctx, p, t))
	cmd := goCommand(ctx, p.dir(t), "build", "-mod=readonly", "-trimpath", "-buildvcs=false",
		"-ldflags", flags, "-o", dest, t.pkg)
	// The Go tool removes its own temporary files when it is interrupted.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	output := &buildOutput{step: step}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return fmt.Errorf("building %s in %s: %w\n%s\n(if modules could not be fetched, check `go env GOPROXY`; "+
			"or set %s to a directory that holds the programs)", t.pkg, p.dir(t), err, output.tail(), OverrideEnv)
	}
	return nil
}

// origin is the module proxy's metadata of a version.
type origin struct {
	Time   time.Time
	Origin struct{ Hash string }
}

// originOf returns the metadata if it can: a module cache that was filled offline may
// have neither the time nor the commit, and the build does not need them.
func originOf(ctx context.Context, p pins, t tool) origin {
	var known origin
	out, err := goCommand(ctx, p.dir(t), "list", "-mod=readonly", "-m", "-json", t.module).Output()
	if err != nil {
		return origin{}
	}
	if err := json.Unmarshal(out, &known); err != nil {
		return origin{}
	}
	return known
}

// linkerFlags returns flags that omit symbols, as the published builds do, and that set
// the version of a Kubernetes program, which is not in its sources (hack/lib/version.sh
// of kubernetes/kubernetes lists the variables). The date is that of the release, so
// that builds are reproducible.
func linkerFlags(t tool, version string, from origin) string {
	flags := []string{"-s", "-w"}
	if t.module != kubernetesModule {
		return strings.Join(flags, " ")
	}
	major, minor := semver(version)
	values := [][2]string{
		{"gitVersion", version},
		{"gitMajor", major},
		{"gitMinor", minor},
		{"gitTreeState", "clean"},
		{"gitCommit", from.Origin.Hash},
	}
	if !from.Time.IsZero() {
		values = append(values, [2]string{"buildDate", from.Time.UTC().Format(time.RFC3339)})
	}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, value := range values {
			flags = append(flags, "-X", pkg+"."+value[0]+"="+value[1])
		}
	}
	return strings.Join(flags, " ")
}

// buildOutput keeps the output of the Go tool for an error, and counts the modules that
// it fetches for the progress line.
type buildOutput struct {
	step    *progress.Step
	said    bytes.Buffer
	fetched int
}

var _ io.Writer = (*buildOutput)(nil)

// Write implements [io.Writer]. The Go tool writes whole lines.
func (o *buildOutput) Write(p []byte) (int, error) {
	if n := bytes.Count(p, []byte("go: downloading ")); n > 0 {
		o.fetched += n
		o.step.Detail("%d modules fetched,", o.fetched)
	}
	return o.said.Write(p)
}

func (o *buildOutput) tail() string {
	lines := strings.Split(strings.TrimRight(o.said.String(), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
