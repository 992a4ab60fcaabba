// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/modelbox-operator/modelbox-operator/cli/command"
)

// numbered is a hub in memory that counts its requests.
type numbered struct {
	answer func(path string, number int) *http.Response
	count  int
}

func (n *numbered) RoundTrip(r *http.Request) (*http.Response, error) {
	n.count++
	response := n.answer(r.URL.EscapedPath(), n.count)
	response.Request, response.Status = r, http.StatusText(response.StatusCode)
	return response, nil
}

func answer(status int, body string, headers ...string) *http.Response {
	header := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}
}

// pinned runs the command on a manifest with a URI, and returns its errors, the manifest, how long
// it took and how many requests it sent.
func pinned(t *testing.T, uri string, of func(path string, number int) *http.Response) (errors, manifest string, took time.Duration, requests int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "box.yaml")
	if err := os.WriteFile(file, []byte(head+"  model: {uri: \""+uri+"\", sizeLimit: 1Gi}\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	_, stop := signal.NotifyContext(t.Context(), syscall.SIGUSR2) // What handles signals begins outside of the bubble.
	stop()
	synctest.Test(t, func(*testing.T) {
		hub, begin := &numbered{answer: of}, time.Now()
		var errOut bytes.Buffer
		command.Run(command.Env{
			IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: &errOut}, HTTP: &http.Client{Transport: hub},
		}, []string{"pin", "-f", file})
		errors, took, requests = errOut.String(), time.Since(begin), hub.count
	})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return errors, string(text), took, requests
}

const known = `{"sha":"` + commit + `","siblings":[{"rfilename":"a","size":1}]}`

// A hub that has answered enough for now is waited for; one that does so for too long is told as
// such, and nothing is written.
func TestPinAtARateLimitedHub(t *testing.T) {
	for name, each := range map[string]struct {
		first *http.Response
		took  time.Duration
	}{
		"RateLimit":   {answer(429, "", "RateLimit", `"api";r=0;t=26`), 26 * time.Second},
		"Retry-After": {answer(503, "", "Retry-After", "90"), 90 * time.Second},
		"no header":   {answer(429, ""), time.Second},
	} {
		errors, manifest, took, requests := pinned(t, "hf://org/name@main", func(_ string, number int) *http.Response {
			if number == 1 {
				return each.first
			}
			return answer(200, known)
		})
		if !strings.Contains(manifest, "@"+commit) || took != each.took || requests != 2 {
			t.Error(name, took, requests, errors, manifest)
		}
	}
	errors, manifest, took, _ := pinned(t, "hf://org/name@main", func(string, int) *http.Response { return answer(429, "", "RateLimit", `"api";r=0;t=300`) })
	if !strings.Contains(errors, "[RateLimited] the next request is of use at 2000-01-01T00:") || strings.Contains(manifest, commit) || took > 30*time.Minute {
		t.Error(took, errors, manifest)
	}
}

// The revision of a pull request has slashes, written as they are or as the hub's pages show them.
func TestPinARevisionOfAPullRequest(t *testing.T) {
	for uri, want := range map[string]string{
		"hf://org/name@refs/pr/3": "hf://org/name@" + commit, "hf://org/name@refs%2Fpr%2F3": "hf://org/name@" + commit,
		"hf://org/name@refs/pr/3/onnx": "hf://org/name@" + commit + "/onnx", "hf://org/name@v1.0/onnx": "hf://org/name@" + commit + "/onnx",
	} {
		_, manifest, _, _ := pinned(t, uri, func(path string, _ int) *http.Response {
			if revision := path[strings.LastIndexByte(path, '/')+1:]; revision != "refs%2Fpr%2F3" && revision != "v1.0" {
				return answer(404, "", "X-Error-Code", "RevisionNotFound")
			}
			return answer(200, strings.ReplaceAll(known, `"a"`, `"onnx/a"`))
		})
		if !strings.Contains(manifest, `"`+want+`"`) && !strings.Contains(manifest, want+",") {
			t.Errorf("%s: %s", uri, manifest)
		}
	}
	errors, manifest, _, _ := pinned(t, "hf://org/name@gone", func(string, int) *http.Response { return answer(404, "", "X-Error-Code", "RevisionNotFound") })
	if !strings.Contains(errors, "the model has no such branch, tag or commit") || strings.Contains(errors, "HF_TOKEN") || !strings.Contains(manifest, "@gone") {
		t.Error(errors, manifest)
	}
}
