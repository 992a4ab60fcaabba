// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/modelbox-operator/modelbox-operator/test/modelserver"
)

var server = modelserver.New(modelserver.Options{Slow: time.Second, Token: "right", Plain: "models.test"})

// serve starts a server that does not follow redirects for its client.
func serve(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	s.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s
}

// get returns a response and what could be read of its body.
func get(t *testing.T, s *httptest.Server, path string, header ...string) (*http.Response, []byte, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for pair := range slices.Chunk(header, 2) {
		request.Header.Set(pair[0], pair[1])
	}
	response, err := s.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response, body, err
}

// files returns the files of an archive.
func files(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEachArchiveIsTheModel(t *testing.T) {
	s := serve(t, server)
	_, plain, _ := get(t, s, "/model.tar")
	_, gz, _ := get(t, s, "/model-7.tar.gz")
	_, zst, _ := get(t, s, "/any/model-a-b.tar.zst")
	_, zipped, _ := get(t, s, "/model.zip")
	fromGzip, err := gzip.NewReader(bytes.NewReader(gz))
	if err != nil {
		t.Fatal(err)
	}
	fromZstd, err := zstd.NewReader(bytes.NewReader(zst))
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]io.Reader{"tar": bytes.NewReader(plain), "tar.gz": fromGzip, "tar.zst": fromZstd} {
		if diff := cmp.Diff(modelserver.Files(), files(t, r)); diff != "" {
			t.Error(name, diff)
		}
	}
	archive, err := zip.NewReader(bytes.NewReader(zipped), int64(len(zipped)))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range modelserver.Files() {
		if got, err := readIn(archive, name); err != nil || !bytes.Equal(got, want) {
			t.Error(name, err)
		}
	}
}

func readIn(archive *zip.Reader, name string) ([]byte, error) {
	file, err := archive.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// The suite's containers check the model by this command.
func TestTheSumsAreThoseOfSha256sum(t *testing.T) {
	path, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	for name, content := range modelserver.Files() {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	check := exec.Command(path, "-c", modelserver.Sums)
	check.Dir = dir
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK") != len(modelserver.Files())-1 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestStatuses(t *testing.T) {
	s := serve(t, server)
	for _, test := range []struct {
		path, authorization string
		status              int
		location            string
	}{
		{"/model.zip", "", http.StatusOK, ""},
		{"/none.zip", "", http.StatusNotFound, ""},
		{"/", "", http.StatusNotFound, ""},
		{"/private/model.zip", "", http.StatusUnauthorized, ""},
		{"/private/model.zip", "Bearer wrong", http.StatusForbidden, ""},
		{"/private/model.zip", "Bearer right", http.StatusOK, ""},
		{"/redirect/http/model.zip", "", http.StatusFound, "http://models.test/model.zip"},
		{"/redirect/ftp/model.zip", "", http.StatusFound, "ftp://models.test/model.zip"},
		{"/redirect/metadata/model.zip", "", http.StatusFound, "http://169.254.169.254/latest/meta-data/model.zip"},
		{"/redirect/loopback/model.zip", "", http.StatusFound, "http://127.0.0.1/model.zip"},
		{"/redirect/here/model.zip", "", http.StatusFound, "/model.zip"},
	} {
		response, _, err := get(t, s, test.path, "Authorization", test.authorization)
		if err != nil || response.StatusCode != test.status || response.Header.Get("Location") != test.location {
			t.Errorf("%s %q: %d %q, %v", test.path, test.authorization, response.StatusCode, response.Header.Get("Location"), err)
		}
	}
}

// A connection is cut after a third of the file, and the rest comes by ranges.
func TestACutDownloadIsResumed(t *testing.T) {
	s := serve(t, server)
	want := server.Body("model.tar.gz")
	first, got, err := get(t, s, "/cut/model.tar.gz")
	if err == nil || len(got) != len(want)/3+1 {
		t.Fatal("the first response has", len(got), "of", len(want), "bytes:", err)
	}
	for range 2 {
		var rest []byte
		_, rest, _ = get(t, s, "/cut/model.tar.gz", "Range", "bytes="+itoa(len(got))+"-", "If-Range", first.Header.Get("Etag"))
		got = append(got, rest...)
	}
	if !bytes.Equal(got, want) {
		t.Error("three responses have", len(got), "of", len(want), "bytes")
	}
}

func itoa(n int) string {
	text, _ := json.Marshal(n)
	return string(text)
}

func TestSlowTakesItsTime(t *testing.T) {
	s := serve(t, server)
	began := time.Now()
	_, got, err := get(t, s, "/slow/model.tar.zst")
	if took := time.Since(began); err != nil || !bytes.Equal(got, server.Body("model.tar.zst")) || took < 900*time.Millisecond {
		t.Error(len(got), took, err)
	}
}

// A client that leaves ends the response.
func TestSlowEndsWithItsClient(t *testing.T) {
	endless := modelserver.New(modelserver.Options{Slow: time.Hour})
	s := httptest.NewServer(endless)
	response, err := s.Client().Get(s.URL + "/slow/model.tar")
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Error(err)
	}
	s.Close() // It waits until no response is being written.
}

func TestTheLogCounts(t *testing.T) {
	s := serve(t, modelserver.New(modelserver.Options{}))
	for _, path := range []string{"/model.zip", "/model.zip", "/none", "/log", "/files"} {
		_, _, _ = get(t, s, path)
	}
	_, _, _ = get(t, s, "/model.zip", "Range", "bytes=5-")
	var got []modelserver.Access
	_, body, _ := get(t, s, "/log")
	want := []modelserver.Access{
		{Method: "GET", Path: "/model.zip", Count: 2}, {Method: "GET", Path: "/model.zip", Range: "bytes=5-", Count: 1}, {Method: "GET", Path: "/none", Count: 1},
	}
	if err := json.Unmarshal(body, &got); err != nil || !slices.Equal(got, want) {
		t.Error(got, err)
	}
	sums := map[string]string{}
	_, body, _ = get(t, s, "/files")
	if err := json.Unmarshal(body, &sums); err != nil || sums["model.zip"] != modelserver.SHA256(server.Body("model.zip")) {
		t.Error(sums, err)
	}
}

// What the fetcher must refuse is as hostile as it is described.
func TestHostileFiles(t *testing.T) {
	bomb := server.Body("bomb.tar.zst")
	r, err := zstd.NewReader(bytes.NewReader(bomb))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	header, err := tar.NewReader(r).Next()
	if err != nil || header.Size != 16<<30 || len(bomb) > 4<<20 {
		t.Error(header, len(bomb), err)
	}
	if n, err := io.CopyN(io.Discard, r, 64<<20); err != nil {
		t.Error("a bomb of", n, "bytes:", err)
	}
	for _, name := range []string{"slip.tar.gz", "link.tar.gz", "big.tar.gz"} {
		unzipped, err := gzip.NewReader(bytes.NewReader(server.Body(name)))
		if err != nil {
			t.Fatal(err)
		}
		header, err := tar.NewReader(unzipped).Next()
		if err != nil || header.Name != "../../x" && header.Linkname != "/etc/passwd" && header.Size != modelserver.Big {
			t.Error(name, header, err)
		}
	}
	slip, err := zip.NewReader(bytes.NewReader(server.Body("slip.zip")), int64(len(server.Body("slip.zip"))))
	if err != nil || slip.File[0].Name != "../../x" {
		t.Error(slip, err)
	}
	truncated, err := gzip.NewReader(bytes.NewReader(server.Body("truncated.tar.gz")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, truncated); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if len(server.Body("big.safetensors")) != modelserver.Big {
		t.Error(len(server.Body("big.safetensors")))
	}
}
