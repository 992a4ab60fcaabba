// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A volume may become full, or its quota may end, at each call that writes to it, and some file
// systems say so only when a file is synced or closed. The fetch then ends with [NoSpace], or the
// model is complete: never a part of it. What a hash has verified is kept, and the next start, which
// has space, fetches what is missing alone.
func TestAVolumeThatFillsAtAnyCall(t *testing.T) {
	t.Parallel()
	several := map[string][]byte{"a/a.bin": []byte("a"), "a/b/weights.bin": make([]byte, 300_000), "config.json": []byte("{}")}
	packed := tarGzip(t, several)
	long, step := os.Getenv("MODELBOX_LONG") != "", 13
	if long {
		step = 1
	}
	one := map[string][]byte{"weights.bin": several["a/b/weights.bin"]}
	for name, each := range map[string]filling{
		"files":             {files: several, uri: "hf://org/name@" + aCommit},
		"files of a claim":  {files: several, uri: "hf://org/name@" + aCommit, args: []string{"--shared"}},
		"another pod's":     {files: several, uri: "hf://org/name@" + aCommit, args: []string{"--shared"}, before: leftByAnotherPod},
		"an archive":        {files: several, uri: "SERVER/org/a.tgz", args: []string{"--sha256", sum(packed)}},
		"a file and a hash": {files: one, uri: "SERVER/org/weights.bin", args: []string{"--sha256", sum(one["weights.bin"])}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each.hub = newHub(several)
			each.hub.bodies["/org/a.tgz"], each.hub.bodies["/org/weights.bin"] = packed, one["weights.bin"]
			each.server = secure(each.hub)
			defer each.server.Close()
			each.args = append(each.args, "--uri", strings.Replace(each.uri, "SERVER", each.server.URL, 1), "--mirror", "hf://="+each.server.URL, "--connections", "1")
			has := &full{}
			code, log, want := each.start(t, t.TempDir(), has)
			if code != 0 || has.calls == 0 {
				t.Fatal(code, want, has.calls)
			}
			each.count = strings.Count(log, "(verified)")
			for call := has.calls; call > 0; call -= step {
				if long || call%2 == 0 {
					each.check(t, want, &full{from: call, until: has.calls, errno: syscall.ENOSPC})
				}
				if long || call%2 == 1 {
					each.check(t, want, &full{from: call, until: call, errno: syscall.EDQUOT})
				}
			}
		})
	}
}

// filling is a fetch into a volume that fills.
type filling struct {
	files  map[string][]byte
	uri    string
	args   []string
	before func(t *testing.T, f *filling, volume string)
	hub    *hub
	server *httptest.Server
	// count is how many files are fetched.
	count int
}

// start starts the program on a volume. It returns the exit code, the log and the termination message.
func (f *filling) start(t *testing.T, volume string, on *full) (int, string, string) {
	t.Helper()
	if f.before != nil {
		f.before(t, f, volume)
	}
	p := newProgram(t, f.server, volume, f.args...)
	on.volume = volume
	code := on.run(t, p)
	return code, p.output.String(), p.lastWord(t)
}

// check starts the program on a volume that fills, and again when it has space.
func (f *filling) check(t *testing.T, want string, on *full) {
	t.Helper()
	volume := t.TempDir()
	code, log, last := f.start(t, volume, on)
	switch {
	case code == 0 && last == want:
	case code == 1 && strings.HasPrefix(last, "[NoSpace] no space is left on the volume: raise spec.model.sizeLimit"):
	default:
		t.Errorf("%s: %d %s\n%s", on.failed, code, last, log)
	}
	if asked := f.hub.reset(); f.before != nil && on.from == on.until && asked > 2 {
		t.Errorf("%s: %d files are fetched, and at most one of them was lost", on.failed, asked)
	}
	if _, err := os.Lstat(filepath.Join(volume, "model")); err == nil {
		mustHave(t, filepath.Join(volume, "model"), f.files)
	}
	verified := strings.Count(log, "(verified)")
	code, again, last := fetchHere(t, f.server, volume, f.args...)
	asked := f.hub.reset()
	if strings.Contains(log, "unpacked") { // The archive is removed before all is flushed, so that it is not.
		verified = 0
	}
	if code != 0 || last != want || len(leftovers(t, volume)) > 0 || asked > f.count-verified {
		t.Errorf("%s, and started again: %d %s, want %s; %d requests, %d files were verified; %v\n%s\n%s", on.failed, code, last, want, asked, verified, leftovers(t, volume), log, again)
	}
	mustHave(t, filepath.Join(volume, "model"), f.files)
}

// leftByAnotherPod makes what a pod leaves that has ended before its last file.
func leftByAnotherPod(t *testing.T, f *filling, volume string) {
	t.Helper()
	f.hub.first = func(w http.ResponseWriter, r *http.Request) bool {
		last := strings.HasSuffix(r.URL.Path, "config.json")
		if last {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return last
	}
	defer func() { f.hub.first = nil }()
	if code, log, last := fetchHere(t, f.server, volume, f.args...); code != 1 || len(leftovers(t, volume)) != 1 {
		t.Fatal(code, last, log)
	}
	f.hub.reset()
	owner := filepath.Join(volume, leftovers(t, volume)[0], "owner")
	if err := os.WriteFile(owner, []byte("another pod"), 0o666); err != nil {
		t.Fatal(err)
	}
}
