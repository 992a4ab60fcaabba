// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Processes are process IDs.
type Processes []int

// tick is the unit of CPU time in /proc: 1/USER_HZ. USER_HZ is 100 on every Linux
// architecture except Alpha and IA-64.
const tick = 10 * time.Millisecond

// CPU returns the CPU time of the processes in user mode and in the kernel (utime and
// stime of /proc/PID/stat, proc_pid_stat(5)), with a resolution of 10 ms.
func (p Processes) CPU() (time.Duration, error) {
	var ticks int64
	for _, pid := range p {
		fields, err := stat(pid)
		if err != nil {
			return 0, err
		}
		for _, field := range fields[11:13] {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * tick, nil
}

// stat returns the fields of /proc/PID/stat from the third field, the state. The second
// field is the name in parentheses, which may itself contain spaces and parentheses.
func stat(pid int) ([]string, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	after := bytes.LastIndexByte(line, ')')
	fields := strings.Fields(string(line[after+1:]))
	if after < 0 || len(fields) < 13 {
		return nil, fmt.Errorf("/proc/%d/stat does not have the fields of proc_pid_stat(5)", pid)
	}
	return fields, nil
}

// Memory returns the resident memory of a process, now (VmRSS) and its peak (VmHWM), in
// bytes.
func Memory(pid int) (now, peak int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		into := map[string]*int64{"VmRSS": &now, "VmHWM": &peak}[name]
		if into == nil {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("reading %s of process %d: %w", name, pid, err)
		}
		*into = kilobytes * 1024
	}
	return now, peak, nil
}

// children finds child processes of this process by the names of their programs.
func children(names ...string) (Processes, error) {
	var found Processes
	for _, name := range names {
		pid, err := child(name)
		if err != nil {
			return nil, err
		}
		found = append(found, pid)
	}
	return found, nil
}

func child(name string) (int, error) {
	entries, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return 0, err
	}
	us := strconv.Itoa(os.Getpid())
	for _, entry := range entries {
		comm, err := os.ReadFile(entry)
		if err != nil || strings.TrimSpace(string(comm)) != name {
			continue // It may have ended since.
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(entry)))
		if err != nil {
			continue
		}
		if fields, err := stat(pid); err == nil && fields[1] == us && fields[0] != "Z" {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("this process has no child process %q", name)
}
