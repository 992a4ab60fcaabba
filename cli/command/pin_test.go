// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/modelbox-operator/modelbox-operator/cli/command"
)

const (
	commit = "0123456789abcdef0123456789abcdef01234567"
	// ofHello is the SHA-256 of "hello".
	ofHello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
)

// models serves a file, and what a hub says of a repository.
type models struct {
	*httptest.Server
	requests atomic.Int32
}

func serveModels(t *testing.T) *models {
	t.Helper()
	m := &models{}
	m.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.requests.Add(1)
		switch authorization := r.Header.Get("Authorization"); r.URL.Path {
		case "/hello.gguf", "/hello.tar.gz":
			fmt.Fprint(w, "hello")
		case "/private.gguf":
			if authorization != "Bearer of-models" {
				w.WriteHeader(http.StatusUnauthorized)
			}
			fmt.Fprint(w, "hello")
		case "/page.gguf":
			fmt.Fprint(w, "<html>")
		case "/cut.gguf":
			w.Header().Set("Content-Length", "10")
			fmt.Fprint(w, "hello")
		case "/api/models/org/chat/revision/main", "/api/models/org/chat/revision/" + commit:
			if authorization != "Bearer of-hub" || r.URL.RawQuery != "blobs=true" {
				w.WriteHeader(http.StatusForbidden)
			}
			fmt.Fprintf(w, `{"sha":%q,"siblings":[{"rfilename":"a.safetensors","size":%d},{"rfilename":"onnx/b.bin","size":%d}]}`, commit, 4<<30, 1<<30)
		case "/api/models/org/evil/revision/main":
			fmt.Fprint(w, `{"sha":"x # y","siblings":[{"rfilename":"a","size":1}]}`)
		case "/api/models/org/evil/revision/" + commit:
			fmt.Fprintf(w, `{"sha":%q,"siblings":[{"rfilename":"a","size":1}]}`, strings.Repeat("0", 40))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(m.Close)
	t.Setenv("HF_ENDPOINT", m.URL+"/")
	t.Setenv("HF_TOKEN", "of-hub")
	t.Setenv("MODEL_TOKEN", "of-models")
	return m
}

// pin runs the command on a manifest, and returns what it has written into the file.
func (m *models) pin(t *testing.T, manifest string, args ...string) (result, string) {
	t.Helper()
	directory, err := os.MkdirTemp(t.TempDir(), "") // The name of a test may have a comma, which separates files.
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(directory)
	const file = "box.yaml"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	code := command.Run(command.Env{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(manifest), Out: &out, ErrOut: &errOut}, HTTP: m.Client()},
		append([]string{"pin", "-f", file}, args...))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return result{out.String(), errOut.String(), code}, string(text)
}

const head = "# A box.\napiVersion: model.github.com/v1\nkind: ModelBox\nmetadata: {name: web}\nspec:\n"

func TestPin(t *testing.T) {
	m := serveModels(t)
	for name, tc := range map[string]struct{ manifest, want string }{
		"https": {
			head + "  model:\n    uri: \"$/hello.gguf\" # the file\n    mountPath: /m\n  image: a:1",
			head + "  model:\n    uri: \"$/hello.gguf\" # the file\n    sha256: " + ofHello + "\n    sizeLimit: 18Mi\n    mountPath: /m\n  image: a:1",
		},
		"with a token, at the end of the file": {
			head + "  model:\n    sizeLimit: 1Gi\n    uri: $/private.gguf", head + "  model:\n    sizeLimit: 1Gi\n    uri: $/private.gguf\n    sha256: " + ofHello,
		},
		"an archive, and a limit that is too small": {
			head + "  model: {sizeLimit: 1Mi, uri: $/hello.tar.gz, mountPath: /m} # here\n",
			head + "  model: {sizeLimit: 18Mi, uri: $/hello.tar.gz, sha256: " + ofHello + ", mountPath: /m} # here\n",
		},
		"hubs, in a list, and lines that end as on Windows": {
			strings.ReplaceAll(head+"  models:\n  - name: 箱\n    uri: 'hf://org/chat/onnx' # 箱\n    sha256: ''\n  - {uri: hf://org/chat@main, exclude: [onnx/]}\n", "\n", "\r\n"),
			strings.ReplaceAll(head+"  models:\n  - name: 箱\n    uri: 'hf://org/chat@"+commit+"/onnx' # 箱\n    sizeLimit: 1152Mi\n    sha256: ''\n  - {uri: hf://org/chat@"+commit+
				", sizeLimit: 4608Mi, exclude: [onnx/]}\n", "\n", "\r\n"),
		},
		"a commit without a limit": {head + "  model: {uri: hf://org/chat@" + commit + "}\n", head + "  model: {uri: hf://org/chat@" + commit + ", sizeLimit: 6Gi}\n"},
		"several documents": {
			head + "  model: {uri: pvc://a/b}\n---\nkind: Pod\nspec: {model: {uri: hf://org/chat}}\n---\n" + head + "  model:\n    uri: $/hello.gguf\n    sizeLimit: 1Gi\n",
			head + "  model: {uri: pvc://a/b}\n---\nkind: Pod\nspec: {model: {uri: hf://org/chat}}\n---\n" + head + "  model:\n    uri: $/hello.gguf\n    sha256: " + ofHello + "\n    sizeLimit: 1Gi\n",
		},
		"JSON": {
			"\ufeff{\"apiVersion\": \"model.github.com/v1\", \"kind\": \"ModelBox\",\n \"spec\": {\"model\": {\"uri\": \"$/hello.gguf\"}}}",
			"\ufeff{\"apiVersion\": \"model.github.com/v1\", \"kind\": \"ModelBox\",\n \"spec\": {\"model\": {\"uri\": \"$/hello.gguf\", \"sha256\": \"" + ofHello + "\", \"sizeLimit\": \"18Mi\"}}}",
		},
		"a list": {
			"kind: List\napiVersion: v1\nitems:\n- apiVersion: model.github.com/v1\n  kind: ModelBox\n  spec:\n    model:\n      uri: $/hello.gguf\n",
			"kind: List\napiVersion: v1\nitems:\n- apiVersion: model.github.com/v1\n  kind: ModelBox\n  spec:\n    model:\n      uri: $/hello.gguf\n      sha256: " + ofHello + "\n      sizeLimit: 18Mi\n",
		},
		"nothing to pin": {head + "  model: {uri: s3://bucket/a/}\n  models: [{uri: \"oci://a@sha256:" + ofHello + "\"}]\n", ""},
		"an alias":       {head + "  modelFileURL: https://a/b\n  model: {sha256: " + ofHello + ", sizeLimit: 1Gi}\n", ""},
		"no model":       {head + "  image: a:1\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			manifest, want := strings.ReplaceAll(tc.manifest, "$", m.URL), strings.ReplaceAll(tc.want, "$", m.URL)
			if want == "" {
				want = manifest
			}
			if got, text := m.pin(t, manifest, "--check"); got.code == 0 != (want == manifest) || text != manifest {
				t.Errorf("the check: %+v %s", got, text)
			}
			got, text := m.pin(t, manifest)
			if diff := cmp.Diff(want, text); diff != "" || got.code != 0 {
				t.Fatalf("%+v (-want +got):\n%s", got, diff)
			}
			before := m.requests.Load()
			again, same := m.pin(t, text)
			check, _ := m.pin(t, text, "--check")
			if same != text || again != (result{}) || check != (result{}) || m.requests.Load() != before {
				t.Errorf("a second run: %+v %+v\n%s", again, check, cmp.Diff(text, same))
			}
		})
	}
}

// What cannot be pinned is said with its line, and stays as it is.
func TestPinFails(t *testing.T) {
	m := serveModels(t)
	for spec, want := range map[string]string{
		"model: {uri: $/none.gguf}":                                            "answers 404 Not Found; a private model needs MODEL_TOKEN in the environment",
		"model: {uri: $/page.gguf}":                                            "the answer is a web page and no model",
		"model: {uri: $/cut.gguf}":                                             "unexpected EOF",
		"model: {uri: hf://org/evil}":                                          "with the commit of the hub, hf://org/evil@x # y",
		"model: {uri: hf://org/none}":                                          "answers 404 Not Found; a private model needs HF_TOKEN in the environment",
		"model: {uri: hf://org/chat/x}":                                        "the hub has no such file at this revision",
		"model: {uri: http://a/b}":                                             "sha256 of http:// is not found out here",
		"model: {uri: s3://bucket/b}":                                          "sha256 of s3:// is not found out here",
		"model: {uri: ftp://a/b}":                                              "must begin with https://",
		"modelFileURL: $/hello.gguf":                                           "spec.modelFileURL: is an alias; write it as spec.model.uri",
		"model:\n    uri: >-\n      $/hello.gguf":                              "spec.model.uri: cannot be edited here",
		"model: {uri: &u $/hello.gguf}":                                        "spec.model.uri: cannot be edited here",
		"model: {uri: \"$/hell\\x6f.gguf\"}":                                   "spec.model.uri: cannot be edited here",
		"model: {uri: $/hello.gguf, sha256: }":                                 "spec.model.uri: sha256 cannot be edited here",
		"model: {uri: hf://org/chat@main, include: ['[z-a]']}":                 "[z-a]",
		"model: {uri: hf://org/evil@" + commit + "}":                           "the hub has another commit than " + commit,
		"model: {uri: $/hello.gguf, sha256: " + strings.Repeat("0a", 32) + "}": "sha256 is " + strings.Repeat("0a", 32) + ", and the file has " + ofHello,
	} {
		manifest := head + "  " + strings.ReplaceAll(spec, "$", m.URL) + "\n"
		got, text := m.pin(t, manifest)
		if got.code != 1 || !strings.Contains(got.err, want) || !strings.Contains(got.err, "box.yaml:") || text != manifest {
			t.Errorf("%s: %+v\n%s", spec, got, text)
		}
	}
}

// The check names the line of each model, and sends no requests.
func TestPinCheck(t *testing.T) {
	m := serveModels(t)
	got, _ := m.pin(t, head+"  model:\n    uri: hf://org/chat\n  models:\n  - {name: a, uri: https://a/b}\n", "--check")
	const want = "box.yaml:7: spec.model.uri: is not pinned: uri, sizeLimit; run 'modelbox pin -f box.yaml'\n" +
		"box.yaml:9: spec.models[0].uri: is not pinned: sha256, sizeLimit; run 'modelbox pin -f box.yaml'\n"
	if got != (result{err: want, code: 1}) || m.requests.Load() != 0 {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{{"pin"}, {"pin", "-f", "none.yaml"}} {
		if got := run("", args...); got.code == 0 || got.err == "" {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

// A manifest is replaced as a whole: it keeps its mode, a link continues to point to it, who has it open reads what was there,
// and nothing is left beside it.
func TestPinReplacesTheFile(t *testing.T) {
	m := serveModels(t)
	dir := t.TempDir()
	file, link := filepath.Join(dir, "box.yaml"), filepath.Join(dir, "link.yaml")
	manifest := head + "  model: {uri: " + m.URL + "/hello.gguf}\n"
	if err := errors.Join(os.WriteFile(file, []byte(manifest), 0o640), os.Symlink("box.yaml", link)); err != nil {
		t.Fatal(err)
	}
	before, err := os.Open(file) // As another process has it open.
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: t.Output()}
	if code := command.Run(command.Env{IOStreams: streams, HTTP: m.Client()}, []string{"pin", "-f", link}); code != 0 {
		t.Fatal(code)
	}
	was, readErr := io.ReadAll(before)
	text, err := os.ReadFile(file)
	info, statErr := os.Stat(file)
	entries, listErr := os.ReadDir(dir)
	target, linkErr := os.Readlink(link)
	if err := errors.Join(err, readErr, statErr, listErr, linkErr); err != nil {
		t.Fatal(err)
	}
	if string(was) != manifest || !strings.Contains(string(text), ofHello) || info.Mode() != 0o640 || len(entries) != 2 || target != "box.yaml" {
		t.Errorf("%s\n%v %v %s", text, info.Mode(), entries, target)
	}
}
