// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Processes are processes by their numbers.
type Processes []int

// tick is what /proc counts CPU time in: USER_HZ, which is 100 on every
// architecture that Linux has an ABI for but Alpha and IA-64.
const tick = 10 * time.Millisecond

// CPU is the time that the processes have spent on CPUs, in user mode and in the
// kernel (utime and stime of /proc/PID/stat, proc_pid_stat(5)), to 10 ms each.
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

// stat is the fields of /proc/PID/stat from the third, the state, on. The second
// is the name, in parentheses, which may itself hold spaces and parentheses.
func stat(pid int) ([]string, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	after := bytes.LastIndexByte(line, ')')
	fields := strings.Fields(string(line[after+1:]))
	if after < 0 || len(fields) < 13 {
		return nil, fmt.Errorf("/proc/%d/stat has not the fields that proc_pid_stat(5) names", pid)
	}
	return fields, nil
}

// Memory is the memory of a process that is in RAM, now (VmRSS) and at its
// highest (VmHWM), in bytes.
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

// children finds, by their programs' names, processes that this one has started.
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
	return 0, fmt.Errorf("no process %q was started by this one", name)
}
