// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
)

const commitID = "0123456789abcdef0123456789abcdef01234567"

// hub speaks the API of https://huggingface.co.
type hub struct {
	files map[string]string
	// token is required if it is set, and lie changes an entry of the list.
	token string
	lie   func(map[string]any)
	// cdn, if set, is where large files are redirected to; seen are its requests.
	cdn    *httptest.Server
	prefix string
	paths  []string
}

const pageSize = 2

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, h.prefix)
	h.paths = append(h.paths, path)
	name, isFile := strings.CutPrefix(path, "/org/name/resolve/"+commitID+"/")
	switch {
	case h.token != "" && r.Header.Get("Authorization") != "Bearer "+h.token:
		w.Header().Set("X-Error-Code", "GatedRepo")
		w.WriteHeader(http.StatusUnauthorized)
	case path == "/api/models/org/name/tree/"+commitID && r.URL.Query().Get("recursive") == "true":
		h.list(w, r)
	case isFile && large(name) && h.cdn != nil:
		http.Redirect(w, r, h.cdn.URL+"/"+name, http.StatusFound)
	case isFile && h.files[name] != "":
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(h.files[name]))
	default:
		w.Header().Set("X-Error-Code", "RepoNotFound")
		w.WriteHeader(http.StatusNotFound)
	}
}

func large(name string) bool { return strings.HasSuffix(name, ".bin") }

func (h *hub) list(w http.ResponseWriter, r *http.Request) {
	names := slices.Sorted(maps.Keys(h.files))
	from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	to := min(from+pageSize, len(names))
	if to < len(names) {
		w.Header().Set("Link", fmt.Sprintf(`<https://%s%s?recursive=true&cursor=%d>; rel="next"`, r.Host, r.URL.Path, to))
	}
	entries := []map[string]any{{"type": "directory", "oid": commitID, "size": 0, "path": "some"}}
	for _, name := range names[from:to] {
		entries = append(entries, h.entry(name))
	}
	_ = json.NewEncoder(w).Encode(entries)
}

func (h *hub) entry(name string) map[string]any {
	content := h.files[name]
	blob := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content))
	entry := map[string]any{"type": "file", "oid": hex.EncodeToString(blob[:]), "size": len(content), "path": name}
	if large(name) {
		whole := sha256.Sum256([]byte(content))
		entry["oid"] = commitID
		entry["lfs"] = map[string]any{"oid": hex.EncodeToString(whole[:]), "size": len(content), "pointerSize": 134}
	}
	if h.lie != nil {
		h.lie(entry)
	}
	return entry
}

var model = map[string]string{
	"README.md": "# A model", "config.json": "{}", "model.bin": strings.Repeat("weights", 10_000), "onnx/model.bin": "onnx", "onnx/a b#c.json": "[]",
}

// fetchHub resolves a URI and downloads its files.
func fetchHub(t *testing.T, h *hub, uri string, change func(*source.Settings, string), rules ...guard.Rule) (map[string]string, error) {
	t.Helper()
	server := httptest.NewTLSServer(h)
	defer server.Close()
	s := settings(uri, "HF_ENDPOINT", server.URL+h.prefix, "HF_TOKEN", "secret")
	s.Mirrors = rules
	if change != nil {
		change(&s, server.URL)
	}
	client := guard.New(s.Mirrors, guard.Options{Proxy: http.ProxyURL(nil), TLS: server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()})
	defer client.Close()
	d := &download.Downloader{Client: client, RetryFor: time.Nanosecond}
	resolved, err := source.Resolve(t.Context(), s, d)
	if err != nil {
		return nil, err
	}
	return downloadAll(t, d, resolved)
}

// item returns what a file is fetched by.
func item(t *testing.T, file source.File) download.Item {
	t.Helper()
	item, err := file.Item(t.Context(), false)
	if err != nil {
		t.Error(err)
	}
	return item
}

func downloadAll(t *testing.T, d *download.Downloader, resolved source.Model) (map[string]string, error) {
	got := map[string]string{}
	for i, each := range resolved.Files {
		path := filepath.Join(t.TempDir(), strconv.Itoa(i))
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := d.File(t.Context(), item(t, each), file, 1<<20); err != nil {
			return got, err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got[each.Name] = string(content)
	}
	return got, nil
}

func TestAModelOfTheHub(t *testing.T) {
	h := &hub{files: model, token: "secret"}
	got, err := fetchHub(t, h, "hf://org/name@"+commitID, nil)
	if err != nil || !maps.Equal(got, model) {
		t.Fatal(got, err)
	}
	if lists := slices.DeleteFunc(h.paths, func(path string) bool { return !strings.HasPrefix(path, "/api/") }); len(lists) != 3 {
		t.Error("pages", lists)
	}
}

// A page of the list that breaks off is read again, from its beginning.
func TestAListThatBreaksOff(t *testing.T) {
	h, lists := &hub{files: model}, 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lists++; lists == 2 {
			w = &cut{ResponseWriter: w, left: 200}
		}
		h.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	client := guard.New(nil, guard.Options{TLS: server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()})
	defer client.Close()
	d := &download.Downloader{Client: client, ConnectFor: time.Minute, RetryFor: time.Minute, Jitter: func() float64 { return 2 }} // The delays are 0.
	resolved, err := source.Resolve(t.Context(), settings("hf://org/name@"+commitID, "HF_ENDPOINT", server.URL), d)
	if err != nil || len(resolved.Files) != len(model) || lists != 4 {
		t.Error(len(resolved.Files), lists, err)
	}
}

func TestAPartOfAModel(t *testing.T) {
	for prefix, want := range map[string][]string{"onnx": {"onnx/a b#c.json", "onnx/model.bin"}, "onnx/": {"onnx/a b#c.json", "onnx/model.bin"}, "config.json": {"config.json"}} {
		got, err := fetchHub(t, &hub{files: model}, "hf://org/name@"+commitID+"/"+prefix, nil)
		if names := slices.Sorted(maps.Keys(got)); err != nil || !slices.Equal(names, want) {
			t.Error(prefix, names, err)
		}
	}
	if _, err := fetchHub(t, &hub{files: model}, "hf://org/name@"+commitID+"/onn", nil); err == nil || failure.Of(err).Word != failure.NotFound {
		t.Error(err)
	}
}

// What is not fetched is not counted, and a pattern that selects nothing is told.
func TestSelectedFiles(t *testing.T) {
	all := slices.Sorted(maps.Keys(model))
	for _, each := range []struct {
		include, exclude []string
		maxFiles         int
		want             []string
		err              string
	}{
		{include: []string{"*.json"}, maxFiles: 2, want: []string{"config.json", "onnx/a b#c.json"}},
		{include: []string{"*.json", "*.bin"}, exclude: []string{"onnx/*"}, maxFiles: 2, want: []string{"config.json", "model.bin"}},
		{exclude: []string{"onnx/", "README.md"}, maxFiles: 2, want: []string{"config.json", "model.bin"}},
		{maxFiles: len(all), want: all},
		{maxFiles: len(all) - 1, err: "[TooBig] the model has more than 4 files"},
		{include: []string{"*.json", "*.gguf"}, maxFiles: 9, err: "[NotFound] spec.model.include: *.gguf matches no file of the model"},
		{exclude: []string{"*.gguf"}, maxFiles: 9, err: "[NotFound] spec.model.exclude: *.gguf matches no file of the model"},
		{include: []string{"*.json"}, exclude: []string{"*"}, maxFiles: 9, err: "[NotFound] spec.model.exclude leaves out each file of the model"},
		{include: []string{"[z-a]"}, maxFiles: 9, err: "[Invalid] spec.model.include: [z-a] must be a pattern"},
	} {
		got, err := fetchHub(t, &hub{files: model}, "hf://org/name@"+commitID, func(s *source.Settings, _ string) {
			s.Include, s.Exclude, s.MaxFiles = each.include, each.exclude, each.maxFiles
		})
		if names := slices.Sorted(maps.Keys(got)); each.err == "" && (err != nil || !slices.Equal(names, each.want)) || each.err != "" && (err == nil || !strings.HasPrefix(err.Error(), each.err)) {
			t.Errorf("%q without %q: %q, %v", each.include, each.exclude, names, err)
		}
	}
	s := settings("https://models.test/a")
	s.Include = []string{"*"}
	if _, err := source.Resolve(t.Context(), s, offline()); err == nil || failure.Of(err).Word != failure.Invalid {
		t.Error("a single file has a selection:", err)
	}
}

func TestRefusalsOfTheHub(t *testing.T) {
	for _, each := range []struct {
		name, want string
		word       failure.Word
		hub        hub
	}{
		{"no token", "401 Unauthorized (GatedRepo)", failure.Denied, hub{files: model, token: "other"}},
		{"a wrong sha256", "sha256 is ", failure.WrongHash, hub{files: model, lie: func(e map[string]any) {
			if lfs, ok := e["lfs"].(map[string]any); ok {
				lfs["oid"] = hash
			}
		}}},
		{"a wrong git hash", "the git hash is ", failure.WrongHash, hub{files: model, lie: func(e map[string]any) { e["oid"] = commitID }}},
		{"a wrong size", "bytes, and the hub's list says 1", failure.WrongHash, hub{files: model, lie: func(e map[string]any) { e["size"] = 1 }}},
		{"no hash", "without a valid hash", failure.Refused, hub{files: model, lie: func(e map[string]any) { e["oid"] = "" }}},
		{"a negative size", "without a valid hash and size", failure.Refused, hub{files: model, lie: func(e map[string]any) { e["size"] = -1 }}},
		{"a path outside", "cannot be stored: ../x", failure.Refused, hub{files: model, lie: func(e map[string]any) { e["path"] = "../x" }}},
		{"an absolute path", "cannot be stored: /x", failure.Refused, hub{files: model, lie: func(e map[string]any) { e["path"] = "/x" }}},
		{"one name twice", "has x twice", failure.Refused, hub{files: model, lie: func(e map[string]any) { e["path"] = "x" }}},
		{"a file and a directory", "has x twice", failure.Refused, hub{files: model, lie: func(e map[string]any) {
			if e["path"] == "config.json" {
				e["path"] = "x/y"
			} else {
				e["path"] = "x"
			}
		}}},
		{"too big", "the model has more than the 1.0 MiB of spec.model.sizeLimit", failure.TooBig, hub{files: model, lie: func(e map[string]any) { e["size"] = 1 << 20 }}},
		{"overflowing", "the model has more than the 1.0 MiB", failure.TooBig, hub{files: model, lie: func(e map[string]any) { e["size"] = int64(math.MaxInt64) }}},
		{"no list", "is no list of files", failure.Invalid, hub{files: model, lie: func(e map[string]any) { e["size"] = "x" }}},
	} {
		_, err := fetchHub(t, &each.hub, "hf://org/name@"+commitID, nil)
		if err == nil || failure.Of(err).Word != each.word || !strings.Contains(err.Error(), each.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", each.name, err)
		}
	}
	if _, err := fetchHub(t, &hub{files: model}, "hf://org/other@"+commitID, nil); err == nil || failure.Of(err).Word != failure.NotFound || !strings.Contains(err.Error(), "RepoNotFound") {
		t.Error(err)
	}
}

func TestAMirrorOfOneOrganization(t *testing.T) {
	renamed, err := fetchHub(t, &hub{files: model}, "hf://public/name@"+commitID, nil, guard.Rule{Prefix: "hf://public", Replacement: "hf://org"})
	if err != nil || !maps.Equal(renamed, model) {
		t.Error(renamed, err)
	}
}

// offline returns a downloader without network.
func offline() *download.Downloader {
	return &download.Downloader{Client: noNetwork{}, RetryFor: time.Nanosecond}
}

type noNetwork struct{}

func (noNetwork) Get(context.Context, guard.Request) (*http.Response, error) {
	return nil, failure.New(failure.Refused, "%w", errors.New("no network"))
}
