// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/place"
)

const aCommit = "0123456789abcdef0123456789abcdef01234567"

// hub serves a model's list and its files, and counts the requests for each path.
type hub struct {
	contents
	mutex sync.Mutex
	asked map[string]int
	// now is how many files are being served, and max the most at once.
	now, max int
	// down is true while there is no list.
	down bool
	// first is called at the beginning of each request for a file, and answers it if it returns true.
	first func(w http.ResponseWriter, r *http.Request) bool
}

func newHub(files map[string][]byte) *hub {
	h := &hub{asked: map[string]int{}, contents: contents{bodies: map[string][]byte{}}}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		list = append(list, fmt.Sprintf(`{"type":"file","path":%q,"size":%d,"oid":%q,"lfs":{"oid":%q,"size":%d}}`, name, len(files[name]), aCommit, sum(files[name]), len(files[name])))
		h.bodies["/org/name/resolve/"+aCommit+"/"+name] = files[name]
	}
	h.bodies["/api/models/org/name/tree/"+aCommit] = []byte("[" + strings.Join(list, ",") + "]")
	return h
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/org/") {
		h.mutex.Lock()
		h.asked[filepath.Base(r.URL.Path)]++
		h.now++
		h.max = max(h.max, h.now)
		h.mutex.Unlock()
		defer func() { h.mutex.Lock(); h.now--; h.mutex.Unlock() }()
		if h.first != nil && h.first(w, r) {
			return
		}
	}
	h.contents.ServeHTTP(w, r)
}

// reset forgets the requests, and returns how many there were.
func (h *hub) reset() (requests int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, each := range h.asked {
		requests += each
	}
	h.asked, h.max = map[string]int{}, 0
	return requests
}

func numbered(count int) map[string][]byte {
	files := map[string][]byte{}
	for i := range count {
		files[fmt.Sprintf("%03d/weights-%03d.bin", i%10, i)] = bytes.Repeat([]byte{byte(i)}, 1000+i)
	}
	return files
}

func mustHave(t *testing.T, directory string, files map[string][]byte) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		found++
		name, _ := filepath.Rel(directory, path)
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, files[name]) {
			return fmt.Errorf("%s has %d bytes: %w", name, len(got), err)
		}
		return nil
	})
	if err != nil || found != len(files) {
		t.Fatalf("%d files of %d: %v", found, len(files), err)
	}
}

func TestFilesAreFetchedAtOnce(t *testing.T) {
	t.Parallel()
	files := numbered(400)
	for connections, most := range map[string]int{"8": 8, "1": 1} {
		h := newHub(files)
		server := secure(h)
		defer server.Close()
		// Each answer waits until as many are asked for as there may be, and so shows that they are.
		h.first = func(_ http.ResponseWriter, r *http.Request) bool {
			for {
				h.mutex.Lock()
				enough := h.max >= most
				h.mutex.Unlock()
				if enough || r.Context().Err() != nil {
					return false
				}
				<-time.After(time.Millisecond)
			}
		}
		volume := t.TempDir()
		code, log, last := fetchHere(t, server, volume, "--uri", "hf://org/name@"+aCommit, "--mirror", "hf://="+server.URL,
			"--size-limit", "10000000", "--connections", connections)
		if code != 0 {
			t.Fatal(code, last, log)
		}
		server.Close() // It waits for its handlers.
		mustHave(t, filepath.Join(volume, "model"), files)
		if h.max != most {
			t.Errorf("%d connections at once, want %d", h.max, most)
		}
		lines := sha256.New()
		bytes := 0
		for _, name := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(lines, "%s  %s\n", sum(files[name]), name)
			bytes += len(files[name])
		}
		if want := success("", fmt.Sprintf("%x", lines.Sum(nil)), bytes); last != want {
			t.Error(last, want)
		}
	}
}

// What is kept of a model is fetched again where it was changed on the volume, and removed by the next model.
func TestWhatIsKeptIsVerifiedAgain(t *testing.T) {
	t.Parallel()
	files := numbered(20)
	h := newHub(files)
	server := secure(h)
	defer server.Close()
	h.first = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "-019.bin") {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	volume := t.TempDir()
	args := []string{"--uri", "hf://org/name@" + aCommit, "--mirror", "hf://=" + server.URL, "--connections", "1"}
	if code, log, last := fetchHere(t, server, volume, args...); code != 1 || len(leftovers(t, volume)) != 1 {
		t.Fatal(code, last, log, leftovers(t, volume))
	}
	h.reset()
	work := filepath.Join(volume, leftovers(t, volume)[0], "model")
	if err := errors.Join(os.WriteFile(filepath.Join(work, "003/weights-003.bin"), bytes.Repeat([]byte("x"), 1003), 0o644), os.WriteFile(filepath.Join(work, "other"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	h.first = nil
	if code, log, last := fetchHere(t, server, volume, args...); code != 0 || len(leftovers(t, volume)) > 0 {
		t.Fatal(code, last, log)
	}
	mustHave(t, filepath.Join(volume, "model"), files)
	if h.asked["weights-019.bin"] != 1 || h.asked["weights-003.bin"] != 1 || h.reset() != 2 {
		t.Error(h.asked)
	}
	// Another model removes what was kept.
	volume = t.TempDir()
	h.first = func(w http.ResponseWriter, r *http.Request) bool {
		missing := strings.HasSuffix(r.URL.Path, "-019.bin")
		if missing {
			http.NotFound(w, r)
		}
		return missing
	}
	if code, _, last := fetchHere(t, server, volume, args...); code != 1 || len(leftovers(t, volume)) != 1 {
		t.Error(code, last, leftovers(t, volume))
	}
	if code, _, last := fetchHere(t, server, volume, "--uri", server.URL+"/none"); code != 1 || len(leftovers(t, volume)) != 0 {
		t.Error(code, last, leftovers(t, volume))
	}
}

// No server leads the program to a server of the pod itself: not by the next page of a list, and not by a redirect.
func TestAHubThatLeadsToLoopback(t *testing.T) {
	t.Parallel()
	inside := &contents{}
	other := secure(inside)
	defer other.Close()
	for name, answer := range map[string]func(w http.ResponseWriter){
		"a page": func(w http.ResponseWriter) {
			w.Header().Set("Link", `<`+other.URL+`/next>; rel="next"`)
			_, _ = io.WriteString(w, "[]")
		},
		"a redirect": func(w http.ResponseWriter) {
			w.Header().Set("Location", other.URL+"/next")
			w.WriteHeader(http.StatusFound)
		},
	} {
		server := secure(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
		code, _, last := fetchHere(t, server, t.TempDir(), "--uri", "hf://org/name@"+aCommit, "--mirror", "hf://="+server.URL)
		if code != 1 || !strings.HasPrefix(last, "[Refused] the server leads to 127.0.0.1, a loopback address") || inside.gets.Load() != 0 {
			t.Error(name, code, last, inside.gets.Load())
		}
		server.Close()
	}
}

// missingIn returns the bytes that are missing of a file, as a state says it, and very many without one.
func missingIn(state string) (bytes int64) {
	var parts [][2]int64
	saved, _ := os.ReadFile(state)
	if found := regexp.MustCompile(`"missing":(\[\[[^a-z]*\]\])`).FindSubmatch(saved); found == nil || json.Unmarshal(found[1], &parts) != nil {
		return math.MaxInt64
	}
	for _, part := range parts {
		bytes += part[1] - part[0]
	}
	return bytes
}

// A large file comes by parts. A process that is killed in the middle leaves them, and the next one asks for the rest.
func TestAKilledFetchOfALargeFileIsContinued(t *testing.T) {
	t.Parallel()
	const size = 160 << 20
	all := sha256.New()
	if _, err := io.Copy(all, &generated{size: size}); err != nil {
		t.Fatal(err)
	}
	hash := fmt.Sprintf("%x", all.Sum(nil))
	var mutex sync.Mutex
	sent, hold := int64(0), int64(100<<20)
	var ranges []string
	reached := make(chan struct{})
	server := secure(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		ranges = append(ranges, r.Header.Get("Range"))
		mutex.Unlock()
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(metered{w, func(n int) {
			mutex.Lock()
			before := sent
			sent += int64(n)
			stop := hold > 0 && sent >= hold
			if stop && before < hold {
				close(reached)
			}
			mutex.Unlock()
			if stop { // Slow from here on, until the process is killed.
				<-time.After(20 * time.Millisecond)
			}
		}}, r, "", time.Time{}, &generated{size: size})
	}))
	defer server.Close()
	volume := t.TempDir()
	start := func() *program {
		p := newProgram(t, server, volume, "--uri", server.URL+"/a.gguf", "--sha256", hash, "--size-limit", "1000000000")
		p.Path = built(t)
		return p.start(t)
	}
	killed := start()
	<-reached
	state := filepath.Join(volume, leftovers(t, volume)[0], "state")
	for deadline := time.Now().Add(time.Minute); missingIn(state) > 100<<20; { // The state is saved each second.
		if time.Now().After(deadline) {
			t.Fatal("the state of what was sent is not saved")
		}
		<-time.After(10 * time.Millisecond)
	}
	_ = killed.Process.Kill()
	_ = killed.Wait()
	mutex.Lock()
	first := slices.Clone(ranges)
	ranges, sent, hold = nil, 0, 0
	mutex.Unlock()
	if again := start(); again.code(t) != 0 || len(leftovers(t, volume)) > 0 {
		t.Fatal(again.output.String(), leftovers(t, volume))
	}
	if info, err := os.Stat(filepath.Join(volume, "model", "a.gguf")); err != nil || info.Size() != size { // The program has verified the hash.
		t.Error(info, err)
	}
	if sent > 110<<20 || slices.Contains(ranges, "") || len(first) < 3 {
		t.Errorf("the second process got %d MiB: %v, after %v", sent>>20, ranges, first)
	}
}

// generated is a large file that takes no memory.
type generated struct{ at, size int64 }

func (g *generated) Read(into []byte) (int, error) {
	n := int(min(int64(len(into)), g.size-g.at))
	for i := range into[:n] {
		into[i] = byte((g.at + int64(i)) >> 12 * 31)
	}
	g.at += int64(n)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (g *generated) Seek(offset int64, whence int) (int64, error) {
	g.at = map[int]int64{io.SeekStart: 0, io.SeekCurrent: g.at, io.SeekEnd: g.size}[whence] + offset
	return g.at, nil
}

// metered tells how much is written.
type metered struct {
	http.ResponseWriter
	wrote func(int)
}

func (m metered) Write(all []byte) (int, error) {
	n, err := m.ResponseWriter.Write(all)
	m.wrote(n)
	return n, err
}

func TestSeveralModels(t *testing.T) {
	t.Parallel()
	archive := tarGzip(t, files)
	var mutex sync.Mutex
	authorization := map[string]string{}
	web := &contents{bodies: map[string][]byte{"/a.tgz": archive, "/draft.gguf.gz": gzipped([]byte("draft"))}}
	server := secure(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		authorization[r.URL.Path] = r.Header.Get("Authorization")
		mutex.Unlock()
		web.ServeHTTP(w, r)
	}))
	defer server.Close()
	volume, other := t.TempDir(), t.TempDir()
	list := func(draft string) string {
		return fmt.Sprintf(`[{"uri":%q,"directory":"model","sizeLimit":3000000},{"name":"draft","uri":%q,"volume":%q,"directory":"draft","sizeLimit":100000,"envPrefix":"M1_"},
			{"name":"third","uri":%q,"directory":"third","sizeLimit":100000,"envPrefix":"M2_"}]`, server.URL+"/a.tgz", server.URL+draft, other, server.URL+"/draft.gguf.gz")
	}
	run := func(models string) (int, string) {
		p := newProgram(t, server, volume)
		at := slices.Index(p.Args, "--directory")
		p.Args = append(slices.Delete(p.Args, at, at+2), "--models", models)
		p.Env = append(p.Env, "MODEL_TOKEN=first", "M1_MODEL_TOKEN=second")
		code := p.start(t).code(t)
		return code, p.lastWord(t)
	}
	if code, last := run(list("/none")); code != 1 || !strings.HasPrefix(last, "[NotFound] model draft: 404 Not Found: ") || !isComplete(t, volume) {
		t.Fatal(code, last)
	}
	code, last := run(list("/draft.gguf.gz"))
	want := fmt.Sprintf(`{"models":[{"digest":"sha256:%s","bytes":%d},{"name":"draft","digest":"sha256:%s","bytes":%d},{"name":"third","digest":"sha256:%s","bytes":%d}]}`,
		sum(archive), len(archive), sum(gzipped([]byte("draft"))), len(gzipped([]byte("draft"))), sum(gzipped([]byte("draft"))), len(gzipped([]byte("draft"))))
	if code != 0 || last != want {
		t.Error(code, last, want)
	}
	for path, want := range map[string]string{filepath.Join(other, "draft", "draft.gguf"): "draft", filepath.Join(volume, "third", "draft.gguf"): "draft"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Error(path, string(got), err)
		}
	}
	if authorization["/a.tgz"] != "Bearer first" || authorization["/none"] != "Bearer second" || authorization["/draft.gguf.gz"] != "" {
		t.Error(authorization)
	}
	for text, want := range map[string]string{
		`[]`:                      "[Invalid] the command line is wrong: ",
		`[{"uri":"x"}]`:           "[Invalid] --uri, --volume and --directory are required",
		`[{"uri":"x","other":1}]`: `[Invalid] the command line is wrong: `,
		list("/none")[:20]:        "[Invalid] the command line is wrong: ",
		list("/none") + "x":       "[Invalid] the command line is wrong: ",
		`[{"uri":"x","directory":"a","sizeLimit":1},{"uri":"x","directory":"a","sizeLimit":1}]`: "[Invalid] two models have the directory a",
	} {
		if code, last := run(text); code != 1 || !strings.HasPrefix(last, want) {
			t.Error(text, code, last)
		}
	}
}

// In a claim, a model of one hub serves the pods of another one only if that lists the same files.
func TestAClaimThatAnotherHubFilled(t *testing.T) {
	t.Parallel()
	files, changed := numbered(3), numbered(3)
	changed["001/weights-001.bin"] = bytes.Repeat([]byte("x"), 1001)
	good, mirror, bad := newHub(files), newHub(files), newHub(changed)
	volume := t.TempDir()
	fetch := func(h *hub) (int, string, string) {
		server := secure(h)
		defer server.Close()
		return fetchHere(t, server, volume, "--uri", "hf://org/name@"+aCommit, "--mirror", "hf://="+server.URL, "--shared")
	}
	if code, log, last := fetch(good); code != 0 {
		t.Fatal(code, last, log)
	}
	digest := ""
	for range 2 {
		code, log, last := fetch(mirror)
		if code != 0 || mirror.reset() != 0 || !strings.Contains(log, "verifying its files") {
			t.Error("the same files of a mirror:", code, last, log)
		}
		digest = last
	}
	code, _, last := fetch(bad)
	if code != 1 || !strings.HasPrefix(last, "[Refused] the volume has another model in the directory model than https://") || !strings.Contains(last, "001/weights-001.bin differs") {
		t.Error("other files:", code, last)
	}
	// What an earlier release has fetched has no record, and is verified once.
	if err := os.Remove(filepath.Join(volume, ".model-model")); err != nil {
		t.Fatal(err)
	}
	server := secure(good)
	defer server.Close()
	args := []string{"--uri", "hf://org/name@" + aCommit, "--mirror", "hf://=" + server.URL, "--shared"}
	good.reset()
	for _, verified := range []bool{true, false} {
		code, log, last := fetchHere(t, server, volume, args...)
		if code != 0 || good.reset() != 0 || strings.Contains(log, "verifying") != verified || last != digest {
			t.Error("without a record:", code, last, digest, log)
		}
	}
	if err := os.WriteFile(filepath.Join(volume, "model", "extra.py"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, last := fetch(mirror); code != 1 || !strings.Contains(last, "extra.py is not among its files") {
		t.Error(code, last)
	}
}

// sizeLimit counts what the kubelet counts: directories, and blocks of 4 KiB.
func TestTheSizeOnTheVolume(t *testing.T) {
	t.Parallel()
	deep := map[string][]byte{}
	for i := range 300 {
		deep[fmt.Sprintf("%03d/a/b/file", i)] = []byte("x")
	}
	server := secure(newHub(deep))
	defer server.Close()
	args := []string{"--uri", "hf://org/name@" + aCommit, "--mirror", "hf://=" + server.URL}
	volume := t.TempDir()
	need := (300 + 3*300 + 8) * 4096 // Files, directories, and what the fetcher needs.
	if code, _, last := fetchHere(t, server, volume, append(args, "--size-limit", fmt.Sprint(need-1))...); code != 1 || !strings.HasPrefix(last, "[TooBig] the model has more than the 4.7 MiB of spec.model.sizeLimit, with its directories") {
		t.Error(code, last)
	}
	if code, _, last := fetchHere(t, server, volume, append(args, "--size-limit", fmt.Sprint(need))...); code != 0 {
		t.Error(code, last)
	}
	used := int64(4096)
	err := filepath.WalkDir(volume, func(_ string, entry fs.DirEntry, err error) error {
		if info, infoErr := entry.Info(); err == nil && infoErr == nil {
			used += place.InBlocks(max(info.Size(), 1))
		}
		return err
	})
	if err != nil || used > int64(need) {
		t.Errorf("%d bytes are used, %d were allowed, %v", used, need, err)
	}
}
