// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
)

var (
	//go:embed kwokctl.yaml
	kwokctlYAML     string
	kwokctlTemplate = template.Must(template.New("kwokctl.yaml").Parse(kwokctlYAML))
	//go:embed audit.yaml
	auditPolicy []byte
)

// settings are the values for the template kwokctl.yaml.
type settings struct {
	AuditPolicy string
	programs    string
}

// Program returns the path of an executable.
func (s settings) Program(name string) string { return filepath.Join(s.programs, name) }

// Port returns a different free port each time.
func (s settings) Port() (int, error) { return freeport.Choose() }

func (s settings) render() ([]byte, error) {
	var out bytes.Buffer
	if err := kwokctlTemplate.Execute(&out, s); err != nil {
		return nil, fmt.Errorf("writing kwokctl's configuration: %w", err)
	}
	return out.Bytes(), nil
}

// create creates and starts a new cluster. kwokctl copies the two files, so they can be
// deleted afterwards.
func (c *Cluster) create(ctx context.Context, programs string) error {
	dir, err := os.MkdirTemp("", "modelbox-cluster-")
	if err != nil {
		return fmt.Errorf("creating a directory for kwokctl's configuration: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	s := settings{
		AuditPolicy: filepath.Join(dir, "audit.yaml"),
		programs:    programs,
	}
	config, err := s.render()
	if err != nil {
		return err
	}
	configPath := filepath.Join(dir, "kwokctl.yaml")
	for path, content := range map[string][]byte{configPath: config, s.AuditPolicy: auditPolicy} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("writing kwokctl's configuration: %w", err)
		}
	}
	// An empty kubeconfig keeps kwokctl from writing to ~/.kube/config.
	return c.kwokctl(ctx, programs, "create", "cluster", "--config", configPath, "--kubeconfig", "")
}

// delete deletes the cluster with kwokctl. kwokctl removes the cluster's context from a
// kubeconfig; the one given here is in the cluster's directory and is deleted too.
func (c *Cluster) delete(ctx context.Context) error {
	// If a process has ended, kwokctl would kill another process that now has its ID.
	if err := c.forgetDead(ctx); err != nil {
		return err
	}
	programs := c.creator("")
	if programs == "" {
		return errors.New("the programs that it was created with do not exist any more")
	}
	return c.kwokctl(ctx, programs, "delete", "cluster", "--kubeconfig", filepath.Join(c.Dir(), "kubeconfig.yaml"))
}

// creator returns the directory of the programs with which the cluster was created, to
// which its bin folder links, or byDefault if it does not exist. So a cluster can still be
// restarted and removed after an update of the repository.
func (c *Cluster) creator(byDefault string) string {
	etcd, err := os.Readlink(filepath.Join(c.Dir(), "bin", "etcd"))
	if err != nil {
		return byDefault
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(etcd), "kwokctl")); err != nil {
		return byDefault
	}
	return filepath.Dir(etcd)
}

// kwokctl runs a command of kwokctl for this cluster.
func (c *Cluster) kwokctl(ctx context.Context, programs string, args ...string) error {
	if err := os.MkdirAll(c.home, 0o700); err != nil {
		return fmt.Errorf("creating kwokctl's directory: %w", err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(programs, "kwokctl"), append([]string{"--name", c.Name}, args...)...)
	cmd.Env = kwokctlEnv(os.Environ(), c.home, programs)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kwokctl %s %s: %w%s", args[0], args[1], err, warnings(output.String()))
	}
	return nil
}

// kwokctlEnv returns the environment without KWOK_ variables, which would change the
// cluster, and with a PATH that finds the kubectl of programs, which kwokctl calls.
func kwokctlEnv(environ []string, home, programs string) []string {
	var env []string
	for _, variable := range environ {
		if !strings.HasPrefix(variable, "KWOK_") {
			env = append(env, variable)
		}
	}
	return append(env,
		"KWOK_WORKDIR="+home,
		"PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH"),
	)
}

// warnings returns the warnings and errors in kwokctl's output as indented lines. The
// output is JSON if it is not a terminal.
func warnings(output string) string {
	var out strings.Builder
	for line := range strings.Lines(output) {
		var entry struct{ Level, Msg, Err string }
		if json.Unmarshal([]byte(line), &entry) != nil {
			fmt.Fprintf(&out, "\n  %s", strings.TrimRight(line, "\n"))
			continue
		}
		if entry.Level == "WARN" || entry.Level == "ERROR" {
			fmt.Fprintf(&out, "\n  %s: %s", entry.Msg, entry.Err)
		}
	}
	return out.String()
}
