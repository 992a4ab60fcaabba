// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig has a context for each server, of the server's name.
func kubeconfig(current string) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	for name, server := range map[string]string{
		"here": "https://127.0.0.1:6443", "named": "https://localhost:1", "k3d": "https://0.0.0.0:2", "v6": "https://[::1]:3",
		"there": "https://10.0.0.1:6443", "dns": "https://localhost.example.com", "kwok-modelbox": "https://127.0.0.1:4",
	} {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: server}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	}
	config.Clusters["proxied"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:5", ProxyURL: "http://proxy:3128"}
	config.Contexts["proxied"] = &clientcmdapi.Context{Cluster: "proxied"}
	config.Contexts["incomplete"] = &clientcmdapi.Context{Cluster: "none"}
	config.CurrentContext = current
	return config
}

func TestChoose(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		request request
		current string
		want    string // The context; empty: the local cluster.
		why     string // A part of why it is the local cluster, or of the error.
		fails   bool
	}{
		"the current context":           {current: "here", want: "here"},
		"localhost":                     {current: "named", want: "named"},
		"0.0.0.0":                       {current: "k3d", want: "k3d"},
		"IPv6":                          {current: "v6", want: "v6"},
		"another host":                  {current: "there", why: "CONTEXT='there' permits its use", fails: true},
		"another host called localhost": {current: "dns", why: "not on this host", fails: true},
		"behind a proxy":                {current: "proxied", why: "not on this host", fails: true},
		"another host, by its name":     {request: request{context: "there"}, current: "here", want: "there"},
		"no current context":            {why: "no current context"},
		"an incomplete context":         {current: "incomplete", why: `no context "incomplete"`},
		"a context that is not there":   {request: request{context: "nowhere"}, current: "here", why: `no context "nowhere"`, fails: true},
		"the local cluster":             {request: request{local: true}, current: "here", why: "selects it"},
		"its own context":               {request: request{name: "modelbox"}, current: "kwok-modelbox", why: "it is the cluster of context"},
		"a contradiction":               {request: request{local: true, context: "here"}, why: "set one of them", fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, why, err := choose(test.request, kubeconfig(test.current))
			if (err != nil) != test.fails || got != test.want {
				t.Fatalf("got context %q and error %v", got, err)
			}
			if err != nil {
				why = err.Error()
			}
			if !strings.Contains(why, test.why) || (why == "") != (test.want != "") {
				t.Errorf("got the reason %q, want %q", why, test.why)
			}
		})
	}
}

func TestEnabled(t *testing.T) {
	for value, want := range map[string]string{"": "default", "0": "false", "true": "true", "no": "error"} {
		t.Setenv("LOCAL", value)
		for _, byDefault := range []bool{true, false} {
			got, err := enabled("LOCAL", byDefault)
			switch {
			case want == "error" && err == nil, want != "error" && err != nil,
				want == "default" && got != byDefault, want == "true" && !got, want == "false" && got:
				t.Errorf("%q is %t, %v", value, got, err)
			}
		}
	}
}

func TestPrefixed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	lines := &prefixed{prefix: "webhook | ", out: &out}
	for _, part := range []string{"one\ntw", "o", "\n\nrest"} {
		if _, err := lines.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff("webhook | one\nwebhook | two\nwebhook | \n", out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestProcess(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	p, err := startProcess("sleeper", exec.Command("sleep", "600"), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.awaitReady(t.Context(), server.URL); err != nil || asked.Load() != 3 {
		t.Errorf("ready after %d requests: %v", asked.Load(), err)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	<-p.done
	if err := p.awaitReady(context.Background(), "http://127.0.0.1:1/"); err == nil || !strings.Contains(err.Error(), "the sleeper ended") {
		t.Errorf("a process that has ended: %v", err)
	}
}

func TestWaitReturnsTheErrorOfAProcess(t *testing.T) {
	t.Parallel()
	p, err := startProcess("controller", exec.Command("sh", "-c", "exit 3"), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	o := &operator{running: []*process{p}}
	if err := o.wait(t.Context()); err == nil || err.Error() != "the controller ended: exit status 3" {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&operator{}).wait(ctx); err != nil {
		t.Errorf("after an interruption: %v", err)
	}
}

func TestOwn(t *testing.T) {
	t.Parallel()
	got := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{
		Name: "modelbox-requester", Annotations: map[string]string{"a": "b"}, Labels: map[string]string{"app": "x"},
	}}
	(&installation{id: "1"}).own(got)
	want := metav1.ObjectMeta{Name: "modelbox-requester-run", Labels: map[string]string{runLabel: "1"}}
	if diff := cmp.Diff(want, got.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}
