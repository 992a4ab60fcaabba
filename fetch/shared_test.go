// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// A lock may have no effect: here it was removed. What a second process does, also after the first
// has published, changes nothing of the model.
func TestALockWithoutEffect(t *testing.T) {
	t.Parallel()
	files := numbered(3)
	h := newHub(files)
	server := secure(h)
	defer server.Close()
	arrived, open := make(chan int, 9), []chan struct{}{make(chan struct{}), make(chan struct{})}
	count := 0
	h.first = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "-002.bin") {
			return false
		}
		h.mutex.Lock()
		number := count
		count++
		h.mutex.Unlock()
		arrived <- number
		<-open[min(number, 1)]
		if number == 0 {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(files["002/weights-002.bin"])))
		w.Header().Set("ETag", `"other"`)
		_, _ = w.Write([]byte("other"))
		_ = http.NewResponseController(w).Flush()
		arrived <- number
		<-r.Context().Done()
		return true
	}
	volume := t.TempDir()
	args := []string{"--uri", "hf://org/name@" + aCommit, "--mirror", "hf://=" + server.URL, "--shared"}
	first := newProgram(t, server, volume, args...).start(t)
	<-arrived
	if err := os.Remove(filepath.Join(volume, ".lock-model")); err != nil {
		t.Fatal(err)
	}
	second := newProgram(t, server, volume, args...).start(t)
	<-arrived
	close(open[0])
	if code := first.code(t); code != 0 {
		t.Error(code, first.output.String())
	}
	close(open[1])
	<-arrived
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); <-time.After(10 * time.Millisecond) {
		mustHave(t, filepath.Join(volume, "model"), files)
	}
	_ = second.Process.Kill()
	_ = second.Wait()
	mustHave(t, filepath.Join(volume, "model"), files)
}

// What is published is what was hashed.
func TestAFileThatIsChangedAfterItsHash(t *testing.T) {
	t.Parallel()
	files := numbered(2)
	h := newHub(files)
	server := secure(h)
	defer server.Close()
	open := make(chan struct{})
	h.first = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "-001.bin") {
			<-open
		}
		return false
	}
	volume := t.TempDir()
	args := []string{"--uri", "hf://org/name@" + aCommit, "--mirror", "hf://=" + server.URL}
	p := newProgram(t, server, volume, args...)
	log := &watched{text: "fetched", seen: make(chan time.Time, 1)}
	p.Stdout = log
	p.start(t)
	<-log.seen
	changed := filepath.Join(volume, leftovers(t, volume)[0], "model", "000", "weights-000.bin")
	before, err := os.Stat(changed)
	if err != nil {
		t.Fatal(err)
	}
	for now := before; now.ModTime().Equal(before.ModTime()); now, _ = os.Stat(changed) { // The clock of the file system ticks.
		if err := os.WriteFile(changed, bytes.Repeat([]byte("x"), 1000), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	close(open)
	if code, last := p.code(t), p.lastWord(t); code != 1 || !strings.HasPrefix(last, "[Failed] 000/weights-000.bin was changed in the volume after its hash was verified") {
		t.Error(code, last)
	}
	if code, log, last := fetchHere(t, server, volume, args...); code != 0 {
		t.Error(code, last, log)
	}
	mustHave(t, filepath.Join(volume, "model"), files)
}

// The same of an archive, whose files have no hash of their own: it is unpacked anew.
func TestAnArchiveThatIsChangedAfterItsHash(t *testing.T) {
	t.Parallel()
	packed := tarred(t, files)
	server := secure(&contents{bodies: map[string][]byte{"/a.tar": packed}})
	defer server.Close()
	other := tarred(t, map[string][]byte{"evil.bin": []byte("x")})
	for name, change := range map[string]func(path string) error{
		"written to": func(path string) error { return os.WriteFile(path, other, 0o644) },
		"damaged":    func(path string) error { return os.WriteFile(path, bytes.ToUpper(packed), 0o644) },
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".x", other, 0o644), os.Rename(path+".x", path))
		},
	} {
		volume := t.TempDir()
		args := []string{"--volume", volume, "--directory", "model", "--size-limit", "3000000", "--uri", server.URL + "/a.tar", "--sha256", sum(packed)}
		var log bytes.Buffer
		changing := writerFunc(func(line []byte) (int, error) {
			if bytes.HasPrefix(line, []byte("fetched ")) {
				archive := filepath.Join(volume, leftovers(t, volume)[0], place.Archive)
				before, err := os.Stat(archive)
				if err != nil {
					return 0, err
				}
				for now := before; now.ModTime().Equal(before.ModTime()); now, _ = os.Stat(archive) { // The clock of the file system ticks.
					if err := change(archive); err != nil {
						return 0, err
					}
				}
			}
			return log.Write(line)
		})
		none := func(string) string { return "" }
		code := run(append(args, "--termination-log", ""), none, report.NewLog(changing), trusting(server))
		if code != 1 || !strings.Contains(log.String(), "[Failed] "+place.Archive+" was changed in the volume after its hash was verified") {
			t.Error(name, code, log.String())
		}
		if code, log, last := fetchHere(t, server, volume, "--uri", server.URL+"/a.tar", "--sha256", sum(packed)); code != 0 || !isComplete(t, volume) {
			t.Error(name, code, last, log)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(line []byte) (int, error) { return f(line) }

// What a hash has verified is kept, whatever ended the fetch.
func TestWhatIsVerifiedIsKept(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter){
		"400":                           func(w http.ResponseWriter) { w.WriteHeader(400) },
		"403":                           func(w http.ResponseWriter) { w.WriteHeader(403) },
		"404":                           func(w http.ResponseWriter) { w.WriteHeader(404) },
		"412":                           func(w http.ResponseWriter) { w.WriteHeader(412) },
		"429":                           func(w http.ResponseWriter) { w.WriteHeader(429) },
		"451":                           func(w http.ResponseWriter) { w.WriteHeader(451) },
		"503":                           func(w http.ResponseWriter) { w.WriteHeader(503) },
		"a page with 200":               func(w http.ResponseWriter) { _, _ = w.Write([]byte("<!doctype html>")) },
		"another file of the same size": func(w http.ResponseWriter) { _, _ = w.Write(bytes.Repeat([]byte("x"), 1019)) },
		"a redirect to http":            func(w http.ResponseWriter) { w.Header().Set("Location", "http://a.test/"); w.WriteHeader(302) },
		"a redirect to a metadata address": func(w http.ResponseWriter) {
			w.Header().Set("Location", "https://169.254.169.254/")
			w.WriteHeader(302)
		},
	} {
		files := numbered(20)
		h := newHub(files)
		server := secure(h)
		h.first = func(w http.ResponseWriter, r *http.Request) bool {
			last := strings.HasSuffix(r.URL.Path, "-019.bin")
			if last {
				answer(w)
			}
			return last
		}
		volume := t.TempDir()
		args := []string{"--uri", "hf://org/name@" + aCommit, "--mirror", "hf://=" + server.URL, "--connections", "1"}
		code, _, last := fetchHere(t, server, volume, args...)
		if code != 1 || len(leftovers(t, volume)) != 1 {
			t.Errorf("%s: %d %s, %q", name, code, last, leftovers(t, volume))
		}
		h.first = nil
		h.reset()
		if code, log, last := fetchHere(t, server, volume, args...); code != 0 || h.reset() != 1 {
			t.Errorf("%s: %d %s, more than what was missing is fetched\n%s", name, code, last, log)
		}
		mustHave(t, filepath.Join(volume, "model"), files)
		server.Close()
	}
}

// Nor does a later start that fails before its first file lose it.
func TestWhatIsVerifiedOutlivesALaterStart(t *testing.T) {
	t.Parallel()
	list := "/api/models/org/name/tree/" + aCommit
	for want, change := range map[string]func(*hub, *guard.Options){
		"[Refused] the certificate of the server": func(_ *hub, o *guard.Options) { o.TLS = &tls.Config{RootCAs: x509.NewCertPool()} },
		"[NoSpace] the volume has": func(h *hub, _ *guard.Options) {
			h.bodies[list] = bytes.ReplaceAll(h.bodies[list], []byte(`"size":1002`), fmt.Appendf(nil, `"size":%d`, 1<<60))
		},
		"[Invalid] ":                      func(h *hub, _ *guard.Options) { h.bodies[list] = []byte("<html>") },
		"[NotFound] ":                     func(h *hub, _ *guard.Options) { delete(h.bodies, list) },
		"[Unreachable] ":                  func(h *hub, _ *guard.Options) { h.down = true },
		"[Invalid] HTTPS_PROXY is no URL": func(_ *hub, o *guard.Options) { o.Proxy = nil },
	} {
		files := numbered(3)
		h := newHub(files)
		server := secure(h)
		volume := t.TempDir()
		args := []string{"--uri", "hf://org/name@" + aCommit, "--mirror", "hf://=" + server.URL, "--connections", "1", "--size-limit", fmt.Sprint(1 << 61)}
		h.first = func(w http.ResponseWriter, r *http.Request) bool {
			last := strings.HasSuffix(r.URL.Path, "-002.bin")
			if last {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return last
		}
		if code, log, last := fetchHere(t, server, volume, args...); code != 1 {
			t.Error(want, last, log)
		}
		good, options := h.bodies[list], trusting(server)
		change(h, &options)
		if _, log, last := runHere(t, options, map[string]string{"HTTPS_PROXY": "a b"}, volume, args...); !strings.HasPrefix(last, want) {
			t.Error(want, last, log)
		}
		h.bodies[list], h.first, h.down = good, nil, false
		h.reset()
		if code, log, last := fetchHere(t, server, volume, args...); code != 0 || h.reset() != 1 {
			t.Errorf("%s: %d %s, more than what was missing is fetched\n%s", want, code, last, log)
		}
		mustHave(t, filepath.Join(volume, "model"), files)
		server.Close()
	}
}

// A volume that ignores case, and one that is too small, are told before the first byte.
func TestWhatTheVolumeCannotHave(t *testing.T) {
	t.Parallel()
	h := newHub(map[string][]byte{"a/Model.bin": []byte("x"), "a/model.bin": []byte("y"), "b/model.bin": []byte("z")})
	server := secure(h)
	defer server.Close()
	uri := "hf://org/name@" + aCommit
	args := []string{"--uri", uri, "--mirror", "hf://=" + server.URL}
	if code, _, last := fetchHere(t, server, t.TempDir(), args...); code != 0 || h.reset() != 3 {
		t.Error("a volume that does not:", code, last)
	}
	volume := t.TempDir()
	settings := source.Settings{
		Argument: modeluri.Argument{URI: uri}, Getenv: func(string) string { return "" }, Mirrors: guard.Rules{{Prefix: "hf://", Replacement: server.URL}},
	}
	// Where case is ignored, the directory "model" has this name as well.
	if err := os.MkdirAll(filepath.Join(volume, place.WorkName("model", uri+"\x00"+settings.Identity()), "MODEL"), 0o755); err != nil {
		t.Fatal(err)
	}
	code, _, last := fetchHere(t, server, volume, args...)
	if code != 1 || !strings.HasPrefix(last, "[Refused] the volume ignores the case of names, and the model has a/Model.bin and a/model.bin") || h.reset() != 0 {
		t.Error(code, last)
	}
	list := "/api/models/org/name/tree/" + aCommit
	h.bodies[list] = fmt.Appendf(nil, `[{"type":"file","path":"a","size":%d,"oid":%q}]`, 1<<60, aCommit)
	code, _, last = fetchHere(t, server, t.TempDir(), append(args, "--size-limit", fmt.Sprint(1<<61))...)
	if code != 1 || !strings.HasPrefix(last, "[NoSpace] the volume has ") || h.reset() != 0 {
		t.Error(code, last)
	}
}
