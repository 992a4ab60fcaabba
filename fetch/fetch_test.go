// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
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
		{of: secret, key: "AWS_REGION"},
		{of: secret, key: "AWS_ACCESS_KEY_ID"},
		{of: secret, key: "HF_ENDPOINT"},
		{of: pod, key: "AWS_ROLE_ARN", want: "role"},
		{of: pod, key: "MODEL_TOKEN"},
		{of: pod, key: "HTTPS_PROXY", want: "http://pod"},
		{of: pod, key: "no_proxy", want: "a"},
		{of: pod, own: map[string]string{"HTTPS_PROXY": "http://own"}, key: "HTTPS_PROXY", want: "http://own"},
	} {
		all := map[string]string{}
		for key, value := range each.of {
			all[key] = value
		}
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
