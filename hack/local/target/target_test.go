// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig has a context for each server; the first letter of a name is the authority's.
func kubeconfig(current string, servers map[string]string) Kubeconfig {
	config := clientcmdapi.NewConfig()
	for name, server := range servers {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: []byte(name[:1])}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, LocationOfOrigin: "/home/.kube/config"}
	}
	config.CurrentContext = current
	return Kubeconfig{
		Config: config, Files: []string{"/home/.kube/config"},
		Local: &clientcmdapi.Cluster{Server: "https://127.0.0.1:7000", CertificateAuthorityData: []byte("l")},
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	servers := map[string]string{
		"kind": "https://127.0.0.1:6443", "prod": "https://10.0.0.1:6443", "local": "https://127.0.0.1:7000", "other": "https://127.0.0.1:7000",
	}
	of := func(name string, named, ask bool) Choice {
		return Choice{Named: named, Ask: ask, Cluster: &Cluster{
			Context: name, Server: servers[name], Namespace: "default", File: "/home/.kube/config", Files: []string{"/home/.kube/config"},
		}}
	}
	for name, test := range map[string]struct {
		request Request
		current string
		want    Choice
		wantErr string
	}{
		"the current context":                  {Request{}, "kind", of("kind", false, false), ""},
		"a current context on another host":    {Request{}, "prod", of("prod", false, true), ""},
		"a named context":                      {Request{Context: "kind"}, "prod", of("kind", true, false), ""},
		"a named context on another host":      {Request{Context: "prod"}, "kind", of("prod", true, false), ""},
		"LOCAL=1":                              {Request{Local: "LOCAL=1"}, "kind", Choice{Why: "LOCAL=1 selects it"}, ""},
		"CLUSTER=other":                        {Request{Local: "CLUSTER=other"}, "kind", Choice{Why: "CLUSTER=other selects it"}, ""},
		"no current context":                   {Request{}, "", Choice{Why: "no kubeconfig with a current context is at /home/.kube/config"}, ""},
		"a current context that is missing":    {Request{}, "gone", Choice{Why: `/home/.kube/config has no context "gone" with a cluster`}, ""},
		"the local cluster's own context":      {Request{}, "local", Choice{Why: `it is the cluster of context "local" in /home/.kube/config`}, ""},
		"the local cluster's context, named":   {Request{Context: "local"}, "kind", Choice{Why: `it is the cluster of context "local" in /home/.kube/config`}, ""},
		"the same address, another authority":  {Request{}, "other", of("other", false, false), ""},
		"a named context that is missing":      {Request{Context: "gone"}, "kind", Choice{}, `no context "gone" with a cluster: choose one of ["kind" "local" "other" "prod"]`},
		"both":                                 {Request{Local: "LOCAL=1", Context: "a b"}, "kind", Choice{}, "LOCAL=1 selects the local cluster and CONTEXT='a b' another one"},
		"the local cluster, without a context": {Request{Local: "LOCAL=1"}, "", Choice{Why: "LOCAL=1 selects it"}, ""},
	} {
		got, err := Choose(test.request, kubeconfig(test.current, servers))
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		expectError(t, name, err, test.wantErr)
	}
}

func expectError(t *testing.T, name string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v, want an error with %q", name, err, want)
	}
}

func TestOnlyAServerOnThisHostNeedsNoPermission(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://127.8.9.1": true, "https://[::1]:6443": true, "https://localhost:8443": true,
		"https://0.0.0.0:6550": true, "https://[::ffff:127.0.0.1]:1": true,
		"https://10.0.0.1:6443": false, "https://localhost.example.com": false, "https://127.0.0.1.example.com": false,
		"https://example.com/127.0.0.1": false, "https://localhost@example.com": false, "https://[fe80::1]": false, "": false, "://": false,
	} {
		if got := onThisHost(&clientcmdapi.Cluster{Server: server}); got != want {
			t.Errorf("%q: got %v, want %v", server, got, want)
		}
	}
	if onThisHost(&clientcmdapi.Cluster{Server: "https://127.0.0.1:6443", ProxyURL: "http://proxy.example.com"}) {
		t.Error("a proxy's 127.0.0.1 passes for this host's")
	}
}

func TestAnswered(t *testing.T) {
	t.Parallel()
	asked := Choice{Ask: true, Cluster: &Cluster{Context: "prod", Server: "https://10.0.0.1", File: "/k"}}
	if _, err := asked.Answered(false, false); err == nil || !strings.Contains(err.Error(), "CONTEXT=prod permits its use, and LOCAL=1 selects the local cluster") {
		t.Errorf("without a terminal: got %v", err)
	}
	got, err := asked.Answered(true, false)
	if want := (Choice{Why: `the cluster of context "prod" (https://10.0.0.1) in /k was declined`}); err != nil || got != want {
		t.Errorf("no: got %+v, %v", got, err)
	}
	if got, err := asked.Answered(true, true); err != nil || got.Cluster != asked.Cluster || !got.Named {
		t.Errorf("yes: got %+v, %v", got, err)
	}
}

func TestChecked(t *testing.T) {
	t.Parallel()
	cluster := &Cluster{Context: "kind", Server: "https://127.0.0.1:1", File: "/k"}
	const described = `the cluster of context "kind" (https://127.0.0.1:1) in /k `
	for name, test := range map[string]struct {
		missing []string
		failed  error
		why     string // empty: the cluster is used
	}{
		"it has the CRDs":    {nil, nil, ""},
		"it has not":         {[]string{"a.example.com", "b.example.com"}, nil, described + "does not have the CRDs a.example.com, b.example.com: 'make install'"},
		"it does not answer": {nil, errors.New("connection refused"), described + "cannot be used: connection refused"},
	} {
		got, err := Choice{Cluster: cluster}.Checked(test.missing, test.failed)
		if err != nil || !strings.HasPrefix(got.Why, test.why) || (got.Cluster == nil) != (test.why != "") {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		got, err = Choice{Cluster: cluster, Named: true}.Checked(test.missing, test.failed)
		expectError(t, name+", named", err, test.why)
		if err == nil && got.Cluster != cluster {
			t.Errorf("%s, named: got %+v", name, got)
		}
	}
}

func TestKubectl(t *testing.T) {
	t.Parallel()
	for want, cluster := range map[string]Cluster{
		"kubectl --kubeconfig /home/.kube/config --context kind-dev":           {Context: "kind-dev", Files: []string{"/home/.kube/config"}},
		"kubectl --kubeconfig '/my files/k' --context 'it'\\''s; rm -rf /'":    {Context: "it's; rm -rf /", Files: []string{"/my files/k"}},
		"KUBECONFIG=/a:/b kubectl --context arn:aws:eks:eu-1:12:cluster/dev_1": {Context: "arn:aws:eks:eu-1:12:cluster/dev_1", Files: []string{"/a", "/b"}},
		"kubectl --kubeconfig /k --context ''":                                 {Files: []string{"/k"}},
	} {
		if got := cluster.Kubectl(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, word := range []string{"", "a b", "'", "$(id)", "a\nb", "~", "-x", "é"} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if strings.ContainsRune(word, 0) {
			t.Skip("no argument contains a zero byte")
		}
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+Quote(word)).Output()
		// Command substitution and echo may change a word; printf does not.
		if err != nil || !bytes.Equal(out, []byte(word)) && word[0] != '-' {
			t.Errorf("%q becomes %q, %v", word, out, err)
		}
	})
}

func TestAsk(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{"y\n": true, "Yes\r\n": true, " y \n": true, "n\n": false, "\n": false, "": false, "yep\n": false} {
		var out bytes.Buffer
		got, err := Ask(t.Context(), strings.NewReader(answer), &out, "Use it?")
		if err != nil || got != want || out.String() != "Use it? [y/N] " {
			t.Errorf("%q: got %v, %v, after %q", answer, got, err, out.String())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, _ := io.Pipe() // Nothing is ever written.
	if _, err := Ask(ctx, in, io.Discard, "Use it?"); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: got %v", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	first := kubeconfig("kind", map[string]string{"kind": "https://127.0.0.1:1"})
	second := kubeconfig("prod", map[string]string{"prod": "https://10.0.0.1", "local": "https://127.0.0.1:7000"})
	for path, config := range map[string]Kubeconfig{"first": first, "second": second} {
		if err := clientcmd.WriteToFile(*config.Config, path); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", strings.Join([]string{"first", filepath.Join(dir, "second"), "gone"}, string(os.PathListSeparator)))
	got, err := Load(filepath.Join(dir, "gone"))
	if err != nil {
		t.Fatal(err)
	}
	if got.CurrentContext != "kind" || len(got.Contexts) != 3 || got.Local != nil {
		t.Errorf("read %v with the current context %q, local %v", got.Contexts, got.CurrentContext, got.Local)
	}
	for _, file := range got.Files {
		if !filepath.IsAbs(file) {
			t.Errorf("%s is relative to this directory, and the processes have another one", file)
		}
	}
	choice, err := Choose(Request{Context: "prod"}, got)
	if err != nil || choice.Cluster.File != filepath.Join(dir, "second") {
		t.Errorf("got %+v, %v, want the context in the second file", choice, err)
	}
	if config, err := got.RESTConfig("prod"); err != nil || config.Host != "https://10.0.0.1" {
		t.Errorf("got %v, %v", config, err)
	}

	if err := os.WriteFile("first", []byte("a: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Load("gone")
	expectError(t, "a file that is no kubeconfig", err, "LOCAL=1")
	t.Setenv("KUBECONFIG", filepath.Join(dir, "gone"))
	if got, err = Load(filepath.Join(dir, "second")); err != nil || got.CurrentContext != "" || got.Local == nil {
		t.Errorf("without a kubeconfig: got %v, %v", got, err)
	}
}
