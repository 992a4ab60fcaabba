// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
)

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		counter := &report.Counter{}
		stop := report.Progress(report.NewLog(&lines), counter, 10*time.Second)
		wait := func() { time.Sleep(10 * time.Second); synctest.Wait() } // The time of the bubble.
		wait()
		counter.Begin("progress", 4<<30)
		counter.Add(1 << 30)
		wait()
		counter.Add(512 << 20)
		wait()
		counter.Add(-1 << 30)
		wait()
		counter.Begin("unpacking", 0)
		counter.Add(10 << 20)
		wait()
		stop()
		want := `progress: 1.0 GiB of 4.0 GiB (25 %), 102.4 MiB/s
progress: 1.5 GiB of 4.0 GiB (37 %), 51.2 MiB/s
progress: 512.0 MiB of 4.0 GiB (12 %), 0 B/s
unpacking: 10.0 MiB, 1.0 MiB/s
`
		if lines.String() != want {
			t.Errorf("got:\n%s", lines.String())
		}
	})
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1<<20 - 1: "1.0 MiB", 1288490189: "1.2 GiB", 1 << 40: "1.0 TiB", 1<<63 - 1: "8.0 EiB",
	} {
		if got := report.Bytes(n); got != want {
			t.Errorf("Bytes(%d) is %s, want %s", n, got, want)
		}
	}
}

func TestLastWord(t *testing.T) {
	var lines bytes.Buffer
	path := filepath.Join(t.TempDir(), "termination-log")
	long := failure.Of(failure.New(failure.NotFound, "%s", strings.Repeat("x", 5000)))
	report.NewLog(&lines).LastWord(path, long)
	written, err := os.ReadFile(path)
	if err != nil || len(written) != 1024 || !strings.HasPrefix(string(written), "[NotFound] xxx") || lines.String() != string(written)+"\n" {
		t.Errorf("%d bytes %q, %v", len(written), written, err)
	}
	lines.Reset()
	report.NewLog(&lines).LastWord(filepath.Join(t.TempDir(), "none", "log"), long)
	if !strings.Contains(lines.String(), "the termination message cannot be written") {
		t.Error(lines.String())
	}
}

func TestALineIsOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"model.bin": "model.bin", "模型.bin": "模型.bin", "a\nb": `a\nb`, "\x1b[31m": `\x1b[31m`, "\xff": `\xff`, "a\u202eb": `a\u202eb`, "../etc/passwd ": "../etc/passwd ",
	} {
		var lines bytes.Buffer
		report.NewLog(&lines).Line("%s", text)
		if lines.String() != want+"\n" {
			t.Errorf("%q is %s, want %s", text, lines.String(), want)
		}
	}
}

// What was there already is no speed.
func TestProgressOfAStartThatContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		counter := &report.Counter{}
		stop := report.Progress(report.NewLog(&lines), counter, 10*time.Second)
		counter.Begin("progress", 0)
		counter.Total(4 << 30)
		counter.Kept(1 << 30)
		counter.Add(100 << 20)
		time.Sleep(10 * time.Second) // The time of the bubble.
		synctest.Wait()
		stop()
		if want := "progress: 1.1 GiB of 4.0 GiB (27 %), 10.0 MiB/s\n"; lines.String() != want {
			t.Error(lines.String())
		}
	})
}

// A secret is hidden in any case, before a line is cut; long ones cost no more than the line.
func TestSecretsInAnyCase(t *testing.T) {
	var lines bytes.Buffer
	log := report.NewLog(&lines)
	token := "Token-" + strings.Repeat("Ab9/", 400)
	log.Hide(token, "Short-Secret")
	for line, want := range map[string]string{
		"x " + token + " y":            "x *** y",
		strings.ToLower(token):         "***",
		strings.ToUpper(token) + token: "******",
		"a short-secret, SHORT-SECRET": "a ***, ***",
		strings.Repeat("a", 2730) + "Short-Secret" + strings.Repeat("b", 4000): strings.Repeat("a", 2728) + "..." + strings.Repeat("b", 1365),
		strings.Repeat("a", 2720) + "Short-Secret" + strings.Repeat("b", 4000): strings.Repeat("a", 2720) + "***" + strings.Repeat("b", 5) + "..." + strings.Repeat("b", 1365),
		"Ä " + strings.ToUpper("short-secret") + " Ä":                          "Ä *** Ä",
		"nothing": "nothing",
	} {
		lines.Reset()
		if log.Line("%s", line); lines.String() != want+"\n" {
			t.Errorf("%q becomes %q, want %q", line, lines.String(), want)
		}
	}
	begin := used(t)
	for range 3000 {
		log.Line("fetched %s...", strings.Repeat("https://bucket.example.com/a/long/name/of/an/object/", 20))
	}
	if took := used(t) - begin; took > 3*time.Second {
		t.Errorf("3000 lines took %s", took)
	}
}

// used is how much CPU time this process has used, which others on the machine do not change.
func used(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
