// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A hundred processes are killed, each at another moment, a quarter of them on each of four volumes. What they leave
// is never a part of the model.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	const kills, volumes = 100, 4
	archive := tarGzip(t, files)
	server := secure(&contents{bodies: map[string][]byte{"/a.tgz": archive}, slow: time.Millisecond})
	t.Cleanup(server.Close)
	binary := built(t)
	for i := range volumes {
		t.Run(fmt.Sprint("volume ", i), func(t *testing.T) {
			t.Parallel()
			volume := t.TempDir()
			k := &killer{volume: volume, program: func(t *testing.T) *program {
				p := newProgram(t, server, volume, "--uri", server.URL+"/a.tgz", "--sha256", sum(archive))
				p.Path = binary
				return p
			}}
			k.measure(t)
			for kill := range kills / volumes {
				k.kill(t, kill)
			}
			k.fetch(t)
			t.Logf("%d processes killed: %d had completed the model, %d left work in progress, %d of them while they unpacked or later",
				kills/volumes, k.complete, k.left, k.late)
		})
	}
}

// killer kills processes that fetch a model into a volume.
type killer struct {
	volume  string
	program func(t *testing.T) *program
	// whole is how long a fetch takes, and end the part of it after the download.
	whole, end time.Duration
	// How many processes had completed the model, had not, and of these were past the download.
	complete, left, late int
}

// fetch lets a process fetch the whole model, and returns how long it took, and how long after the download.
func (k *killer) fetch(t *testing.T) (whole, end time.Duration) {
	t.Helper()
	p := k.program(t)
	log := &watched{text: "unpacking", seen: make(chan time.Time, 1)}
	p.Stdout = log
	from := time.Now()
	code := p.start(t).code(t)
	ended := time.Now()
	if code != 0 || !isComplete(t, k.volume) || len(leftovers(t, k.volume)) > 0 {
		t.Fatal(code, log.String(), leftovers(t, k.volume))
	}
	return ended.Sub(from), ended.Sub(<-log.seen)
}

func (k *killer) measure(t *testing.T) {
	t.Helper()
	k.whole, k.end = time.Hour, time.Hour
	for range 2 { // The first is slower: nothing is in the page cache.
		whole, end := k.fetch(t)
		k.whole, k.end = min(k.whole, whole), min(k.end, end)
		k.remove(t)
	}
}

func (k *killer) remove(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(k.volume, "model")); err != nil {
		t.Fatal(err)
	}
}

// kill kills a process: each second one at any moment, the others while they unpack, write everything to the disk, and rename.
func (k *killer) kill(t *testing.T, number int) {
	t.Helper()
	p := k.program(t)
	log := &watched{text: "fetching", seen: make(chan time.Time, 1)}
	within := k.whole * 5 / 4
	if number%2 == 1 {
		log.text, within = "unpacking", k.end*5/4
	}
	p.Stdout = log
	p.start(t)
	ended := make(chan struct{})
	go func() {
		select {
		case <-log.seen:
		case <-ended:
			return
		}
		select {
		case <-time.After(rand.N(within)):
			_ = p.Process.Kill()
		case <-ended:
		}
	}()
	code := p.code(t)
	close(ended)
	if code > 0 {
		t.Fatal(code, log.String())
	}
	k.check(t, log.String())
}

// check looks at what a killed process has left.
func (k *killer) check(t *testing.T, log string) {
	t.Helper()
	if isComplete(t, k.volume) {
		k.complete++
		k.remove(t)
		return
	}
	k.left++
	if strings.Contains(log, "unpacking") {
		k.late++
	}
	for _, name := range leftovers(t, k.volume) {
		if !strings.HasPrefix(name, ".fetch-") {
			t.Fatal("a part of the model is visible:", name)
		}
	}
}

// watched is the log of a process, and sends the time of the first line with a text.
type watched struct {
	lines bytes.Buffer
	text  string
	seen  chan time.Time
}

func (w *watched) String() string { return w.lines.String() }

func (w *watched) Write(line []byte) (int, error) {
	n, err := w.lines.Write(line)
	if w.text != "" && strings.Contains(w.String(), w.text) {
		w.seen <- time.Now()
		w.text = ""
	}
	return n, err
}
