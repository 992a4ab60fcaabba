// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cost is what a command needed, with the commands that it ran.
type cost struct {
	time, cpu time.Duration
	// memory is the most that all processes had, in bytes.
	memory int64
}

// run runs a command, and adds what it needed.
func (c *cost) run(b *testing.B, command *exec.Cmd) {
	b.Helper()
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	begin := time.Now()
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	most, err := peak(command)
	if err != nil {
		b.Fatal(err, output.String())
	}
	c.time += time.Since(begin)
	c.cpu += command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	c.memory = max(c.memory, most)
}

// compare reports what fetch-model needs, and how many times what a shell does that runs a script with $URL and $DIR. Each runs once for
// each round, in turns.
func compare(b *testing.B, server *httptest.Server, script string, args ...string) {
	b.Helper()
	var own, shell cost
	for b.Loop() {
		directory := b.TempDir()
		other := exec.Command("bash", "-o", "pipefail", "-ec", script)
		other.Env = append(withoutProxies(os.Environ()), "URL="+server.URL, "DIR="+directory, "CURL_CA_BUNDLE="+certificate(b, server))
		shell.run(b, other)
		fetch := exec.Command(built(b), append([]string{"--volume", b.TempDir(), "--directory", "model", "--size-limit", "100000000000", "--termination-log", ""}, args...)...)
		fetch.Env = append(withoutProxies(os.Environ()), "SSL_CERT_FILE="+certificate(b, server))
		own.run(b, fetch)
	}
	b.ReportMetric(own.time.Seconds()/float64(b.N), "s")
	b.ReportMetric(own.time.Seconds()/shell.time.Seconds(), "time/shell")
	b.ReportMetric(own.cpu.Seconds()/shell.cpu.Seconds(), "cpu/shell")
	b.ReportMetric(float64(own.memory)/(1<<20), "MiB")
	b.ReportMetric(float64(shell.memory)/(1<<20), "MiB-shell")
}

// What a fetch costs, beside curl, sha256sum and tar: docs/performance.md.
func BenchmarkFetch(b *testing.B) {
	unpack := `{ { curl -sSf "$URL/a.tgz" | tee /dev/fd/3 | tar -xz -C "$DIR"; } 3>&1 | sha256sum >"$DIR.sum"; } && sync -f "$DIR"`
	for name, count := range map[string]int{"an archive of 512 MiB": 8, "an archive of 20,000 files": 20_000} {
		b.Run(name, func(b *testing.B) {
			archive := gzipped(tarred(b, randomFiles(count, 512<<20/count/max(1, count/1000))))
			server := secure(&contents{bodies: map[string][]byte{"/a.tgz": archive}})
			defer server.Close()
			compare(b, server, unpack, "--uri", server.URL+"/a.tgz", "--sha256", sum(archive))
		})
	}
	b.Run("400 files with 20 ms of latency", func(b *testing.B) {
		files := randomFiles(400, 10_000)
		h := newHub(files)
		h.first = func(http.ResponseWriter, *http.Request) bool { time.Sleep(20 * time.Millisecond); return false }
		server := secure(h)
		defer server.Close()
		script := "cd $DIR; curl -sSf --remote-name-all"
		for _, name := range slices.Sorted(maps.Keys(files)) {
			script += " $URL/org/name/resolve/" + aCommit + "/" + name
		}
		compare(b, server, script+"; sha256sum * >../sum", "--uri", "hf://org/name@"+aCommit, "--mirror", "hf://="+server.URL)
	})
	b.Run("10,000 files of 20 kB with 20 ms of latency", func(b *testing.B) {
		files := randomFiles(10_000, 20_000)
		h := newHub(files)
		h.first = func(http.ResponseWriter, *http.Request) bool { time.Sleep(20 * time.Millisecond); return false }
		server := secure(h)
		defer server.Close()
		var list strings.Builder
		for _, name := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(&list, "url = %s/org/name/resolve/%s/%s\nremote-name\n", server.URL, aCommit, name)
		}
		path := filepath.Join(b.TempDir(), "list")
		if err := os.WriteFile(path, []byte(list.String()), 0o600); err != nil {
			b.Fatal(err)
		}
		compare(b, server, "cd $DIR; curl -sSf --parallel --parallel-max 8 --config "+path+"; sha256sum * >../sum", "--uri", "hf://org/name@"+aCommit, "--mirror", "hf://="+server.URL)
	})
	b.Run("1 GiB with 100 MB/s for each connection", func(b *testing.B) {
		const size = 1 << 30
		all := sha256.New()
		if _, err := io.Copy(all, &generated{size: size}); err != nil {
			b.Fatal(err)
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"1"`)
			begin, sent := time.Now(), 0
			http.ServeContent(metered{w, func(n int) {
				sent += n
				time.Sleep(time.Until(begin.Add(time.Duration(sent) * 10))) // 10 ns for each byte.
			}}, r, "", time.Time{}, &generated{size: size})
		}))
		defer server.Close()
		compare(b, server, `curl -sSf "$URL/a" | tee "$DIR/a" | sha256sum`, "--uri", server.URL+"/a", "--sha256", fmt.Sprintf("%x", all.Sum(nil)))
	})
}

// randomFiles are files of a size that no compression makes smaller.
func randomFiles(count, size int) map[string][]byte {
	source, files := rand.NewChaCha8([32]byte{}), map[string][]byte{}
	for i := range count {
		body := make([]byte, size)
		_, _ = source.Read(body) // It never fails.
		files[fmt.Sprintf("weights-%05d.bin", i)] = body
	}
	return files
}
