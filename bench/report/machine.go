// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes the machine of a run. Before and After are its load average over a
// minute before and after the run: if Before is more than about one, other processes
// were running, and all times are too long.
type Machine struct {
	CPUs   int     `json:"cpus"`
	CPU    string  `json:"cpu"`
	Memory string  `json:"memory"`
	Kernel string  `json:"kernel"`
	Go     string  `json:"go"`
	Before float64 `json:"loadBefore"`
	After  float64 `json:"loadAfter"`
}

// ThisMachine describes this machine.
func ThisMachine() Machine {
	return Machine{
		CPUs:   runtime.NumCPU(),
		CPU:    field("/proc/cpuinfo", "model name"),
		Memory: field("/proc/meminfo", "MemTotal"),
		Kernel: strings.TrimSpace(text("/proc/sys/kernel/osrelease")),
		Go:     runtime.Version(),
		Before: Load(),
	}
}

func (m Machine) String() string {
	return fmt.Sprintf("%d CPUs (%s), %s, Linux %s, %s; load %.1f before, %.1f after", m.CPUs, m.CPU, m.Memory, m.Kernel, m.Go, m.Before, m.After)
}

// Load returns the machine's load average over a minute.
func Load() float64 {
	var load float64
	_, _ = fmt.Sscan(text("/proc/loadavg"), &load)
	return load
}

func field(path, name string) string {
	for line := range strings.Lines(text(path)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func text(path string) string {
	content, _ := os.ReadFile(path)
	return string(content)
}
