// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Variables that make the test's binary something else.
const (
	// asProgram makes it fetch-model.
	asProgram = "FETCH_TEST_PROGRAM"
	// askingParent makes its calls that write depend on the process that has started it.
	askingParent = "FETCH_TEST_ASKING_PARENT"
)

// built returns the program as a release has it: without the race detector it starts much faster.
func built(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binaries, "fetch-model")
	command := exec.Command("go", "build", "-race=false", "-o", path, ".")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	return path, nil
})

// binaries is the directory that the program is built into.
var binaries string

func TestMain(m *testing.M) {
	if os.Getenv(askingParent) != "" {
		if err := askParent(); err != nil {
			fmt.Fprintln(os.Stderr, "seccomp:", err)
			os.Exit(1)
		}
	}
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	directory, err := os.MkdirTemp("", "fetch-model")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(directory)
	binaries = directory
	return m.Run()
}

// program is a run of fetch-model as a process.
type program struct {
	*exec.Cmd
	output         bytes.Buffer
	terminationLog string
}

// newProgram prepares a run that trusts the server.
func newProgram(t *testing.T, server *httptest.Server, volume string, args ...string) *program {
	t.Helper()
	p := &program{terminationLog: filepath.Join(t.TempDir(), "termination-log")}
	args = append([]string{"--volume", volume, "--directory", "model", "--size-limit", "100000000", "--termination-log", p.terminationLog}, args...)
	p.Cmd = exec.Command(os.Args[0], args...)
	p.Stdout, p.Stderr = &p.output, &p.output
	p.Env = append(withoutProxies(os.Environ()), asProgram+"=yes", "SSL_CERT_FILE="+certificate(t, server))
	return p
}

func withoutProxies(environment []string) []string {
	var kept []string
	for _, each := range environment {
		if name, _, _ := strings.Cut(strings.ToLower(each), "="); !strings.HasSuffix(name, "_proxy") {
			kept = append(kept, each)
		}
	}
	return kept
}

func certificate(t testing.TB, server *httptest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if server.Certificate() == nil {
		return path
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(path, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// peak waits for the end of a command that was started in a session of its own. It returns the most memory in bytes that the processes of
// the session had. The kernel's own count of it begins with what the parent had.
func peak(command *exec.Cmd) (most int64, err error) {
	ended := make(chan error)
	go func() { ended <- command.Wait() }()
	for {
		select {
		case err := <-ended:
			return most, err
		case <-time.After(20 * time.Millisecond):
			most = max(most, memory(strconv.Itoa(command.Process.Pid)))
		}
	}
}

func memory(session string) (bytes int64) {
	directories, _ := filepath.Glob("/proc/[0-9]*")
	for _, each := range directories {
		stat, _ := os.ReadFile(filepath.Join(each, "stat")) // A process may end at any moment.
		_, after, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(after); len(fields) < 4 || fields[3] != session {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(each, "status"))
		if _, after, found := strings.Cut(string(status), "VmHWM:"); found {
			size, _ := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
			bytes += size << 10
		}
	}
	return bytes
}

// code waits for the program's end, and returns its exit code.
func (p *program) code(t *testing.T) int {
	t.Helper()
	err := p.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

func (p *program) start(t *testing.T) *program {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *program) lastWord(t *testing.T) string {
	t.Helper()
	word, err := os.ReadFile(p.terminationLog)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(word)
}

// leftovers returns what a volume has beside the model, and the lock and the record of its name.
func leftovers(t *testing.T, volume string) []string {
	t.Helper()
	entries, err := os.ReadDir(volume)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, each := range entries {
		if each.Name() != "model" && each.Name() != ".lock-model" && each.Name() != ".model-model" {
			names = append(names, each.Name())
		}
	}
	return names
}
