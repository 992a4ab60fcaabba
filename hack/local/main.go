// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command local runs the operator on this machine, with a real control plane and
// simulated nodes. It needs only Go.
//
//	go run ./hack/local <command>
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/modelbox-operator/modelbox-operator/hack/local/binaries"
	"github.com/modelbox-operator/modelbox-operator/hack/local/cluster"
	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
)

// command is a subcommand.
type command struct {
	name, does string
	run        func(ctx context.Context, l local) error
}

var commands = []command{
	{"up", "start the cluster, or its processes that have ended, and write bin/kubeconfig", up},
	{"down", "stop the cluster and remove its files", down},
	{"demo", "show and check the main features on a cluster of its own, and remove it (KEEP=1 keeps it)", demo},
	{"run", "run both processes until Ctrl-C, against the cluster of the current kubeconfig if it has the CRDs, or else the local one", run},
	{"binaries", "download or build the control plane's programs, and print their directory", printBinaries},
}

const environment = `
Environment:
  CLUSTER=name            which local cluster (default modelbox; others get bin/kubeconfig-<name>)
  LOCAL=1                 run: against the local cluster
  CONTEXT=name            run: against the cluster of this context of the kubeconfig
  ENABLE_WEBHOOKS=false   run: only the controller, and no webhook configurations
  WEBHOOK_ARGS="..."      run: more flags for the webhook process
  CONTROLLER_ARGS="..."   run: more flags for the controller process
  MODELBOX_BINARIES=dir   use the programs in dir; download and build nothing
`

func main() {
	log.SetLogger(logr.Discard()) // Otherwise controller-runtime prints that it has no logger.
	// SIGPIPE too: a Ctrl-C also ends the other programs of a pipe, such as tee, and a write to it must
	// not end this one before it has removed what it installed.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	err := dispatch(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		os.Exit(1)
	}
}

// dispatch runs the command that args name. Without arguments it prints the usage.
func dispatch(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 || slices.Contains([]string{"help", "-h", "--help"}, args[0]) {
		return usage(out)
	}
	for _, c := range commands {
		if c.name == args[0] && len(args) == 1 {
			l, err := here(out)
			if err != nil {
				return err
			}
			return c.run(ctx, l)
		}
	}
	return fmt.Errorf("unknown command %q: `go run ./hack/local` lists the commands", args)
}

func usage(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprint(table, "Run the operator on this machine: a real control plane, simulated nodes.\n\n"+
		"Usage: go run ./hack/local <command>\n\n")
	for _, c := range commands {
		_, _ = fmt.Fprintf(table, "  %s\t%s\n", c.name, c.does)
	}
	_, _ = fmt.Fprint(table, environment)
	return table.Flush()
}

// local is the environment of the commands.
type local struct {
	// root is the repository, and cache the directory of the files that all clones share.
	root, cache string
	cluster     *cluster.Cluster
	report      *progress.Reporter
	out         io.Writer
	// ask asks the user a question that is answered by yes or no. It is nil without a terminal.
	ask func(ctx context.Context, question string) (bool, error)
}

// here returns the environment of the working directory.
func here(out io.Writer) (local, error) {
	root, err := findRoot()
	if err != nil {
		return local{}, err
	}
	cache, err := binaries.DefaultCache()
	if err != nil {
		return local{}, err
	}
	report := progress.Stderr()
	name := cluster.DefaultName
	if named := os.Getenv(cluster.NameEnv); named != "" {
		name = named
	}
	c, err := cluster.New(name, cache, root, report)
	if err != nil {
		return local{}, fmt.Errorf("%s: %w", cluster.NameEnv, err)
	}
	return local{root: root, cache: cache, cluster: c, report: report, out: out, ask: askOn(os.Stdin, os.Stderr)}, nil
}

// findRoot returns the repository that contains the working directory.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "hack", "tools", "kube", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("this directory is not in a clone of the repository: change to one")
		}
	}
}

func printBinaries(ctx context.Context, l local) error {
	dir, err := l.binaries(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(l.out, dir)
	return err
}

func (l local) binaries(ctx context.Context) (string, error) {
	return binaries.Ensure(ctx, binaries.Config{
		Root:     l.root,
		Cache:    l.cache,
		Override: os.Getenv(binaries.OverrideEnv),
		Report:   l.report,
	})
}

func up(ctx context.Context, l local) error {
	if err := l.up(ctx); err != nil {
		return err
	}
	l.report.Say("Try: bin/kubectl --kubeconfig %s get nodes", l.relative(l.cluster.Kubeconfig))
	return nil
}

// up starts the cluster and links its kubectl in bin/.
func (l local) up(ctx context.Context) error {
	dir, err := l.binaries(ctx)
	if err != nil {
		return err
	}
	if err := l.cluster.Up(ctx, dir); err != nil {
		return err
	}
	return link(filepath.Join(dir, "kubectl"), filepath.Join(l.root, "bin", "kubectl"))
}

// link creates the symbolic link at, or corrects it.
func link(to, at string) error {
	if now, err := os.Readlink(at); err == nil && now == to {
		return nil
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("replacing %s: %w", at, err)
	}
	// Another command may have created it at the same time.
	if err := os.Symlink(to, at); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("linking kubectl: %w", err)
	}
	return nil
}

// relative shortens a path for a message.
func (l local) relative(path string) string {
	if short, err := filepath.Rel(l.root, path); err == nil {
		return short
	}
	return path
}

func down(ctx context.Context, l local) error {
	if err := l.cluster.Down(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(l.certs()); err != nil {
		return fmt.Errorf("removing the webhook's certificate: %w", err)
	}
	return nil
}

// certs returns the directory of the webhook's certificate for this cluster.
func (l local) certs() string { return filepath.Join(l.root, "bin", "certs", l.cluster.Name) }
