// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
	"github.com/modelbox-operator/modelbox-operator/fetch/source"
)

// A named model has the variables of its own Secret, and of the pod what says who that is.
func TestTheEnvironmentOfAModel(t *testing.T) {
	pod := map[string]string{"AWS_REGION": "eu-west-1", "AWS_ROLE_ARN": "role", "MODEL_TOKEN": "first", "HTTPS_PROXY": "http://pod", "no_proxy": "a"}
	secret := map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "first", "HF_ENDPOINT": "https://first"}
	for _, each := range []struct {
		of        map[string]string
		own       map[string]string
		key, want string
	}{
		{of: pod, key: "AWS_REGION", want: "eu-west-1"},
		{of: pod, own: map[string]string{"AWS_REGION": "cn-north-1"}, key: "AWS_REGION", want: "cn-north-1"},
		{of: pod, own: map[string]string{"AWS_ACCESS_KEY_ID": "own"}, key: "AWS_REGION"},
		{of: map[string]string{"AWS_REGION": "eu-west-1", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials"}, key: "AWS_REGION", want: "eu-west-1"},
		{of: secret, key: "AWS_REGION"},
		{of: secret, key: "AWS_ACCESS_KEY_ID"},
		{of: secret, key: "HF_ENDPOINT"},
		{of: pod, key: "AWS_ROLE_ARN", want: "role"},
		{of: pod, key: "MODEL_TOKEN"},
		{of: pod, key: "HTTPS_PROXY", want: "http://pod"},
		{of: pod, key: "no_proxy", want: "a"},
		{of: pod, own: map[string]string{"HTTPS_PROXY": "http://own"}, key: "HTTPS_PROXY", want: "http://own"},
	} {
		all := maps.Clone(each.of)
		for key, value := range each.own {
			all["M1_"+key] = value
		}
		if got := environment("M1_", func(key string) string { return all[key] })(each.key); got != each.want {
			t.Errorf("%s of %v is %q, want %q", each.key, all, got, each.want)
		}
		if got := environment("", func(key string) string { return each.of[key] })(each.key); got != each.of[each.key] {
			t.Errorf("%s of the first model is %q", each.key, got)
		}
	}
}

// A named model is fetched by the proxy of its own Secret, and the others by that of the container.
func TestTheProxyOfANamedModel(t *testing.T) {
	volume := t.TempDir()
	models := fmt.Sprintf(`[{"uri":"https://a.test/a","volume":%q,"directory":"a","sizeLimit":100000},{"name":"draft","uri":"https://a.test/b","volume":%q,"directory":"b","sizeLimit":100000,"envPrefix":"M1_"}]`, volume, volume)
	for _, each := range []struct{ pod, own, want string }{
		{"http://[::1]:1", "ftp://own.test", "[Unreachable] https://a.test/a: "},
		{"ftp://pod.test", "", "[Invalid] HTTPS_PROXY is no URL of a proxy"},
		{"", "ftp://own.test", "[Invalid] model draft: HTTPS_PROXY is no URL of a proxy"},
	} {
		if each.pod == "" { // The first one is there.
			if err := os.MkdirAll(filepath.Join(volume, "a", "there"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		word := filepath.Join(t.TempDir(), "termination-log")
		env := map[string]string{"HTTPS_PROXY": each.pod, "M1_HTTPS_PROXY": each.own}
		run([]string{"--models", models, "--termination-log", word, "--retry-for", "1ms"}, func(name string) string { return env[name] }, report.NewLog(io.Discard), guard.Options{})
		if last, err := os.ReadFile(word); err != nil || !strings.HasPrefix(string(last), each.want) {
			t.Errorf("%+v: %s %v", each, last, err)
		}
	}
}

// The digest of a folder is that of what sha256sum prints, whatever the names of its files.
func TestTheDigestIsThatOfSha256sum(t *testing.T) {
	directory, content := t.TempDir(), "weights"
	var list source.Model
	var fetched []download.Fetched
	for _, name := range []string{"a b.bin", "line\nbreak", "模型.bin"} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		list.Files = append(list.Files, source.File{Name: name})
		fetched = append(fetched, download.Fetched{Bytes: 7, SHA256: sum([]byte(content))})
	}
	command := exec.Command("sha256sum", "a b.bin", "line\nbreak", "模型.bin")
	command.Dir = directory
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	f := &fetcher{Settings: source.Settings{Getenv: os.Getenv}}
	if got := f.record(list, fetched).Digest; strings.TrimPrefix(got, "sha256:") != sum(output) {
		t.Errorf("%s is not that of\n%s", got, output)
	}
}
