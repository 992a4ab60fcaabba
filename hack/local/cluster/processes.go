// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// watchEvery is how often the processes are checked while they start.
	watchEvery = 250 * time.Millisecond
	// endWithin is how long a killed process may take to end.
	endWithin = 10 * time.Second

	// tailLines is how many lines of a log an error contains, and tailWidth is their
	// maximum length in bytes. tailBytes is how much of the log is read for that.
	tailLines = 12
	tailWidth = 240
	tailBytes = 64 << 10
)

// diedError is a component that ended on its own.
type diedError struct{ component string }

func (e *diedError) Error() string { return e.component + " ended unexpectedly" }

// processes returns the cluster's running processes from the system's process list, by
// component. It does not use kwokctl's pid files: after a crash or a reboot they may
// contain the ID of an unrelated process, or of a zombie. A process belongs to the
// cluster if its executable is in the cluster's own bin folder.
func (c *Cluster) processes(ctx context.Context) (map[string]int, error) {
	commands, err := runningCommands(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	live := map[string]int{}
	for pid, command := range commands {
		for _, component := range components {
			path := filepath.Join(c.Dir(), "bin", component)
			if command == path || strings.HasPrefix(command, path+" ") {
				live[component] = pid
			}
		}
	}
	return live, nil
}

// runningCommands returns the command line of every running process, with arguments
// separated by spaces. Zombies have none.
func runningCommands(ctx context.Context) (map[int]string, error) {
	if _, err := os.Stat("/proc/self/cmdline"); err == nil {
		return commandsOfProc("/proc")
	}
	out, err := exec.CommandContext(ctx, "ps", "-axww", "-o", "pid=,stat=,args=").Output()
	if err != nil {
		return nil, fmt.Errorf("running ps: %w", err)
	}
	return commandsOfPS(string(out)), nil
}

// commandsOfProc reads Linux's procfs (proc(5)).
func commandsOfProc(proc string) (map[int]string, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	commands := map[int]string{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// The process may have ended since the directory was listed.
		line, err := os.ReadFile(filepath.Join(proc, entry.Name(), "cmdline"))
		if err == nil && len(line) > 0 {
			commands[pid] = strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
		}
	}
	return commands, nil
}

// commandsOfPS parses lines of pid, state and command line. Z is the state of a zombie.
func commandsOfPS(out string) map[int]string {
	commands := map[int]string{}
	for line := range strings.Lines(out) {
		pid, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		state, command, _ := strings.Cut(strings.TrimSpace(rest), " ")
		number, err := strconv.Atoi(pid)
		if err == nil && !strings.HasPrefix(state, "Z") {
			commands[number] = strings.TrimSpace(command)
		}
	}
	return commands
}

// recorded returns kwokctl's pid files, by component.
func (c *Cluster) recorded() map[string]int {
	pids := map[string]int{}
	for _, component := range components {
		content, err := os.ReadFile(c.pidFile(component))
		if err != nil {
			continue
		}
		// An invalid pid file is handled like that of a process that has ended.
		pid, _ := strconv.Atoi(strings.TrimSpace(string(content)))
		pids[component] = pid
	}
	return pids
}

func (c *Cluster) pidFile(component string) string {
	return filepath.Join(c.Dir(), "pids", component+".pid")
}

// dead lists the components that kwokctl started and that do not run any more.
func (c *Cluster) dead(ctx context.Context) ([]string, error) {
	// The pid files are read first, so that a process that is started now does not seem
	// to have ended.
	recorded := c.recorded()
	live, err := c.processes(ctx)
	if err != nil {
		return nil, err
	}
	var dead []string
	for component, pid := range recorded {
		if now, lives := live[component]; !lives || now != pid {
			dead = append(dead, component)
		}
	}
	slices.Sort(dead)
	return dead, nil
}

// forgetDead removes the pid files of processes that have ended, so that kwokctl does
// not mistake an unrelated process for its own, and kill it.
func (c *Cluster) forgetDead(ctx context.Context) error {
	dead, err := c.dead(ctx)
	if err != nil {
		return err
	}
	for _, component := range dead {
		if err := removeFile(c.pidFile(component)); err != nil {
			return err
		}
	}
	return nil
}

// checkRunning returns an error if a component does not run.
func (c *Cluster) checkRunning(ctx context.Context) error {
	live, err := c.processes(ctx)
	if err != nil {
		return err
	}
	for _, component := range components {
		if live[component] == 0 {
			return &diedError{component}
		}
	}
	return nil
}

// watch aborts the start of a cluster when one of its processes ends, because kwokctl
// would continue to wait for minutes. A process must be dead in two successive checks,
// because a pid file is empty for a moment while kwokctl writes it.
func (c *Cluster) watch(ctx context.Context, abort context.CancelCauseFunc) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	var before []string
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		dead, err := c.dead(ctx)
		if err != nil {
			continue
		}
		for _, component := range dead {
			if slices.Contains(before, component) {
				abort(&diedError{component})
				return
			}
		}
		before = dead
	}
}

// endProcesses kills the cluster's processes and waits until they have ended. They do
// not need a graceful end, because the cluster's files are removed next.
func (c *Cluster) endProcesses(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	for {
		live, err := c.processes(ctx)
		if err != nil || len(live) == 0 {
			return err
		}
		for _, pid := range live {
			// An error is ignored: if the process has ended, the next check shows it.
			if process, err := os.FindProcess(pid); err == nil {
				_ = process.Kill()
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("processes %v do not end", slices.Sorted(maps.Values(live)))
		case <-time.After(watchEvery):
		}
	}
}

// explain adds the end of the relevant log to the error of a failed start, and the
// command that removes the cluster.
func (c *Cluster) explain(err error) error {
	component := "kube-apiserver"
	if died, ok := errors.AsType[*diedError](err); ok {
		component = died.component
	}
	return fmt.Errorf("%w\n\nThe end of %s:\n%s\nTo start again with a new cluster: CLUSTER=%s go run ./hack/local down, then up",
		err, c.Log(component), tail(c.Log(component)), c.Name)
}

// tail returns the last lines of a log, indented.
func tail(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return "  (" + err.Error() + ")\n"
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		_, _ = file.Seek(-tailBytes, io.SeekEnd)
	}
	content, err := io.ReadAll(io.LimitReader(file, tailBytes))
	if err != nil {
		return "  (" + err.Error() + ")\n"
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	var out strings.Builder
	for _, line := range lines[max(0, len(lines)-tailLines):] {
		fmt.Fprintf(&out, "  %s\n", line[:min(len(line), tailWidth)])
	}
	return out.String()
}
