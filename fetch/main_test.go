// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
)

// secure starts a server whose log does not show that clients were killed.
func secure(handler http.Handler) *httptest.Server {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	return server
}

// files are the model of these tests.
var files = func() map[string][]byte {
	source, all := rand.NewChaCha8([32]byte{}), map[string][]byte{}
	for i := range 20 {
		body := make([]byte, 50_000)
		source.Read(body)
		all[fmt.Sprintf("layers/%d/weights.bin", i)] = body
	}
	all["config.json"] = []byte("{}")
	return all
}()

func tarGzip(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	return gzipped(tarred(t, files))
}

func tarred(t testing.TB, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for name, body := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(body)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		w.Write(body)
	}
	w.Close()
	return out.Bytes()
}

func gzipped(content []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(content)
	w.Close()
	return out.Bytes()
}

func zipped(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, body := range files {
		file, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		file.Write(body)
	}
	w.Close()
	return out.Bytes()
}

func sum(of []byte) string {
	hash := sha256.Sum256(of)
	return hex.EncodeToString(hash[:])
}

// contents serves a content for each path, and counts the requests.
type contents struct {
	bodies map[string][]byte
	gets   atomic.Int32
	// slow makes each part of 16 KiB wait.
	slow time.Duration
}

func (c *contents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.gets.Add(1)
	body, found := c.bodies[r.URL.Path]
	if !found {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", `"`+sum(body)+`"`)
	http.ServeContent(throttled{w, c.slow}, r, "", time.Time{}, bytes.NewReader(body))
}

type throttled struct {
	http.ResponseWriter
	pause time.Duration
}

func (s throttled) Write(all []byte) (int, error) {
	for written := 0; written < len(all); {
		if s.pause > 0 {
			<-time.After(s.pause)
		}
		n, err := s.ResponseWriter.Write(all[written:min(written+16<<10, len(all))])
		if written += n; err != nil {
			return written, err
		}
	}
	return len(all), nil
}

// isComplete is true if the volume has the model, and fails if it has a part of it.
func isComplete(t *testing.T, volume string) bool {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(volume, "model")); os.IsNotExist(err) {
		return false
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join(volume, "model", name)); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("the model is partial: %s has %d bytes, %v", name, len(got), err)
		}
	}
	return true
}

// runHere runs the program in this process. It returns the exit code, the log and the termination message.
func runHere(t *testing.T, options guard.Options, env map[string]string, volume string, args ...string) (int, string, string) {
	t.Helper()
	word := filepath.Join(t.TempDir(), "termination-log")
	args = append([]string{"--volume", volume, "--directory", "model", "--size-limit", "3000000", "--termination-log", word, "--retry-for", "1ms"}, args...)
	var lines bytes.Buffer
	code := run(args, func(name string) string { return env[name] }, report.NewLog(&lines), options)
	last, err := os.ReadFile(word)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return code, lines.String(), string(last)
}

// trusting trusts a server, and has no proxy.
func trusting(server *httptest.Server) guard.Options {
	options := guard.Options{Proxy: http.ProxyURL(nil)}
	if transport := server.Client().Transport.(*http.Transport); transport.TLSClientConfig != nil {
		options.TLS = transport.TLSClientConfig.Clone()
	}
	return options
}

func fetchHere(t *testing.T, server *httptest.Server, volume string, args ...string) (int, string, string) {
	t.Helper()
	return runHere(t, trusting(server), nil, volume, args...)
}

// success is the termination message of one model.
func success(name, sum string, bytes int) string {
	if name != "" {
		name = fmt.Sprintf(`"name":%q,`, name)
	}
	return fmt.Sprintf(`{"models":[{%s"digest":"sha256:%s","bytes":%d}]}`, name, sum, bytes)
}

func TestAModelIsFetched(t *testing.T) {
	t.Parallel()
	archive := tarGzip(t, files)
	server := secure(&contents{bodies: map[string][]byte{"/a.tar.gz": archive, "/weights.pt": archive}})
	defer server.Close()
	volume := t.TempDir()
	code, log, last := fetchHere(t, server, volume, "--uri", server.URL+"/a.tar.gz?token=secret", "--sha256", sum(archive))
	if code != 0 || last != success("", sum(archive), len(archive)) || !isComplete(t, volume) || len(leftovers(t, volume)) > 0 || strings.Contains(log, "secret") {
		t.Fatal(code, last, log, leftovers(t, volume))
	}
	gets := server.Config.Handler.(*contents)
	if code, log, _ := fetchHere(t, server, volume, "--uri", server.URL+"/other"); code != 0 || gets.gets.Load() != 1 || !strings.Contains(log, "there already") {
		t.Error("a complete model is fetched again", code, log)
	}
	volume = t.TempDir()
	if code, _, last = fetchHere(t, server, volume, "--uri", server.URL+"/weights.pt"); code != 0 {
		t.Fatal(last)
	}
	if got, err := os.ReadFile(filepath.Join(volume, "model", "weights.pt")); err != nil || !bytes.Equal(got, archive) {
		t.Error("a plain file:", err)
	}
}

// What a hub lists costs as little memory as what is kept of it: a page of 16 MiB has millions of entries that are nothing.
func TestAHugeListCostsLittleMemory(t *testing.T) {
	t.Parallel()
	const commit, page = "0123456789abcdef0123456789abcdef01234567", 16 << 20
	long := func(i int) string { return strings.Repeat("d%/", 50) + fmt.Sprint(i) }
	for name, each := range map[string]struct {
		entry func(int) string
		want  string
	}{
		"nothing":    {func(int) string { return "{}" }, "[TooBig] the list has more than 1000000 entries"},
		"long names": {func(i int) string { return fmt.Sprintf(`{"type":"file","oid":%q,"size":1,"path":%q}`, commit, long(i)) }, "[TooBig] the names of the model's files"},
		"one name":   {func(int) string { return `{"path":"` + strings.Repeat("a", page-20) + `"}` }, "[NotFound] the commit has no file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := []byte("[")
			for i := 0; len(list) < page-300; i++ {
				list = append(append(list, each.entry(i)...), ',')
			}
			list[len(list)-1] = ']'
			server := secure(&contents{bodies: map[string][]byte{"/api/models/org/name/tree/" + commit: list}})
			defer server.Close()
			p := newProgram(t, server, t.TempDir(), "--uri", "hf://org/name@"+commit, "--mirror", "hf://="+server.URL, "--size-limit", "1000000000000")
			p.Path = built(t)
			p.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			most, _ := peak(p.start(t).Cmd)
			if last := p.lastWord(t); !strings.HasPrefix(last, each.want) || most == 0 || most > 128<<20 {
				t.Errorf("%s, %d MiB", last, most>>20)
			}
			t.Logf("a page of %d MiB costs at most %d MiB of memory", len(list)>>20, most>>20)
		})
	}
}

func TestLastWords(t *testing.T) {
	t.Parallel()
	archive := tarGzip(t, files)
	server := secure(&contents{bodies: map[string][]byte{
		"/a.tgz": archive, "/short.tgz": archive[:len(archive)/2], "/slip.zip": zipped(t, map[string][]byte{"../../etc/passwd": []byte("x")}),
	}})
	defer server.Close()
	for _, each := range []struct {
		want string
		args []string
	}{
		{"[NotFound] 404 Not Found: SERVER/b: check spec.model.uri", []string{"--uri", "SERVER/b"}},
		{"[Unreachable] https://127.0.0.1:1/a: dial tcp 127.0.0.1:1: connect: connection refused, and no attempt brought more for ",
			[]string{"--uri", "https://127.0.0.1:1/a", "--connect-for", "499ms", "--retry-for", "1h"}},
		{"[Invalid] --size-limit is required, and more than zero: correct it", []string{"--uri", "SERVER/a", "--size-limit", "0"}},
		{"[Invalid] --max-files, --max-ratio, --progress-every, --connect-for, --retry-for and --connections are more than zero", []string{"--uri", "SERVER/a", "--connect-for", "0"}},
		{"[WrongHash] sha256 is " + sum(archive) + ", spec.model.sha256 says " + sum(nil), []string{"--uri", "SERVER/a.tgz", "--sha256", sum(nil)}},
		{"[RefusedArchive] the archive ends too early", []string{"--uri", "SERVER/short.tgz"}},
		{"[RefusedArchive] the archive has an entry outside of its directory: ../../etc/passwd", []string{"--uri", "SERVER/slip.zip"}},
		{"[TooBig] the archive (", []string{"--uri", "SERVER/a.tgz", "--size-limit", "1500000"}},
		{"[TooBig] SERVER/a.tgz has more than the", []string{"--uri", "SERVER/a.tgz", "--size-limit", "500000"}},
		{"[TooBig] the archive has more than 5 files", []string{"--uri", "SERVER/a.tgz", "--max-files", "5"}},
		{"[Invalid] --uri, --volume and --directory are required", []string{"--uri", ""}},
		{"[Invalid] the command line is wrong: flag provided but not defined: -x", []string{"--x"}},
		{"[Invalid] there are arguments", []string{"x"}},
		{"[Invalid] --directory ../x is no name", []string{"--uri", "SERVER/a", "--directory", "../x"}},
		{"[Invalid] --directory .x is no name", []string{"--uri", "SERVER/a", "--directory", ".x"}},
		{"[Invalid] --volume cannot be opened", []string{"--uri", "SERVER/a", "--volume", "/does/not/exist"}},
		{"[Invalid] --mirror is not PREFIX=REPLACEMENT", []string{"--uri", "SERVER/a", "--mirror", "x"}},
		{"[Invalid] http:// needs spec.model.sha256", []string{"--uri", "http://a.test/a"}},
		{"[Refused] 169.254.169.254 is a link-local", []string{"--uri", "https://169.254.169.254/a"}},
	} {
		volume := t.TempDir()
		for i := range each.args {
			each.args[i] = strings.Replace(each.args[i], "SERVER", server.URL, 1)
		}
		code, log, last := fetchHere(t, server, volume, each.args...)
		want := strings.Replace(each.want, "SERVER", server.URL, 1)
		if code != 1 || !strings.HasPrefix(last, want) || !strings.HasSuffix(log, last+"\n") || isComplete(t, volume) || len(leftovers(t, volume)) > 0 {
			t.Errorf("%v: %d %q, want %q; log:\n%s%v", each.args, code, last, want, log, leftovers(t, volume))
		}
	}
}

func TestSharedVolumeWhereTheFirstIsKilled(t *testing.T) {
	t.Parallel()
	archive := tarGzip(t, files)
	web := &contents{bodies: map[string][]byte{"/a.tgz": archive}}
	begun, open := make(chan struct{}), make(chan struct{})
	var first sync.Once
	server := secure(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held := false
		first.Do(func() { held = true })
		if held {
			close(begun)
			<-open
		}
		web.ServeHTTP(w, r)
	}))
	defer server.Close()
	volume := t.TempDir()
	holder := newProgram(t, server, volume, "--uri", server.URL+"/a.tgz", "--shared").start(t)
	<-begun
	others := []*program{
		newProgram(t, server, volume, "--uri", server.URL+"/a.tgz", "--shared").start(t),
		newProgram(t, server, volume, "--uri", server.URL+"/a.tgz", "--shared").start(t),
	}
	_ = holder.Process.Kill()
	_ = holder.Wait()
	close(open)
	for _, each := range others {
		if code := each.code(t); code != 0 {
			t.Error(code, each.output.String())
		}
	}
	if gets := web.gets.Load(); !isComplete(t, volume) || len(leftovers(t, volume)) > 0 || gets != 2 {
		t.Error(leftovers(t, volume), gets, "GETs: one of the killed process and one of its successor")
	}
}

func TestSIGTERM(t *testing.T) {
	t.Parallel()
	archive := tarGzip(t, files)
	begun := make(chan struct{})
	var once sync.Once
	web := &contents{bodies: map[string][]byte{"/a.tgz": archive}}
	server := secure(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hang := false
		once.Do(func() { hang = true })
		if hang {
			close(begun)
			<-r.Context().Done()
			return
		}
		web.ServeHTTP(w, r)
	}))
	defer server.Close()
	volume := t.TempDir()
	stopped := newProgram(t, server, volume, "--uri", server.URL+"/a.tgz").start(t)
	<-begun
	_ = stopped.Process.Signal(syscall.SIGTERM)
	if code, last := stopped.code(t), stopped.lastWord(t); code != 143 || !strings.HasPrefix(last, "[Interrupted] ") || isComplete(t, volume) {
		t.Error(code, last)
	}
	again := newProgram(t, server, volume, "--uri", server.URL+"/a.tgz").start(t)
	if code := again.code(t); code != 0 || !isComplete(t, volume) || len(leftovers(t, volume)) > 0 {
		t.Error(code, again.output.String())
	}
}

func TestAReadOnlyVolume(t *testing.T) {
	t.Parallel()
	server := secure(&contents{})
	defer server.Close()
	for _, shared := range []string{"--shared=false", "--shared"} {
		volume := t.TempDir()
		p := newProgram(t, server, volume, "--uri", server.URL+"/a", shared)
		on := &full{volume: volume, from: 1, until: 1 << 30, errno: syscall.EROFS}
		if code, last := on.run(t, p), p.lastWord(t); code != 1 || !strings.HasPrefix(last, "[Denied] the volume is read-only: fetch into") {
			t.Error(shared, code, last)
		}
	}
}

// The program executes no other program, only these modules are in it, and of the SDK of AWS neither the chain of credentials nor the
// client of the metadata service.
func TestWhatIsInTheProgram(t *testing.T) {
	t.Parallel()
	output, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}", ".").CombinedOutput()
	if err != nil {
		t.Fatal(err, string(output))
	}
	allowed := map[string]bool{
		"github.com/modelbox-operator/modelbox-operator/fetch": true, "github.com/aws/aws-sdk-go-v2": true, "github.com/aws/smithy-go": true,
		"github.com/modelbox-operator/modelbox-operator": true, "github.com/gofrs/flock": true, "golang.org/x/net": true, "golang.org/x/text": true, "github.com/klauspost/compress": true, "golang.org/x/sys": true,
	}
	for line := range strings.Lines(string(output)) {
		path, module, _ := strings.Cut(strings.TrimSpace(line), " ")
		if path == "os/exec" || strings.HasPrefix(path, "github.com/aws/aws-sdk-go-v2/config") || strings.Contains(path, "/imds") || path == "plugin" || module != "" && !allowed[module] && !strings.HasPrefix(module, "github.com/aws/aws-sdk-go-v2/") {
			t.Errorf("the program has the package %s of %s", path, module)
		}
	}
}
