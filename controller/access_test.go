// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// useKubeconfig makes a kubeconfig the one of the process: two contexts with a namespace each, and
// one without.
func useKubeconfig(t *testing.T, server string) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server}
	for name, namespace := range map[string]string{"current": "team-a", "other": "team-b", "plain": ""} {
		config.Contexts[name] = &clientcmdapi.Context{Cluster: "c", Namespace: namespace}
	}
	config.CurrentContext = "current"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
}

// namespaceServer answers a read of the namespace modelbox-system with a status code, and counts
// the requests.
func namespaceServer(t *testing.T, code int, requests *int) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests++
		if r.Method != http.MethodGet || r.URL.Path != "/api/v1/namespaces/modelbox-system" {
			t.Errorf("a request %s %s, want a read of the namespace", r.Method, r.URL)
		}
		var body any = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: int32(code), Reason: map[int]metav1.StatusReason{
			http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusForbidden: metav1.StatusReasonForbidden,
		}[code]}
		if code == http.StatusOK {
			body = corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// A controller that is started by hand needs no flag for the namespace of its lease.
func TestLeaseNamespaceOutsideAPod(t *testing.T) {
	tests := map[string]struct {
		flag, context string
		code          int
		want, wantErr string
		requests      int
	}{
		"the cluster has an install":           {"", "", http.StatusOK, "modelbox-system", "", 1},
		"no install: the context's namespace":  {"", "", http.StatusNotFound, "team-a", "", 1},
		"no install: the named context's":      {"", "other", http.StatusNotFound, "team-b", "", 1},
		"no install: a context without one":    {"", "plain", http.StatusNotFound, "default", "", 1},
		"a user who may not see whether it is": {"", "", http.StatusForbidden, "", "--leader-election-namespace", 1},
		"the flag":                             {"mine", "", http.StatusOK, "mine", "", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			requests := 0
			useKubeconfig(t, namespaceServer(t, test.code, &requests).URL)
			o := options{access: access{context: test.context}}
			o.leaderNamespace, o.leaseDuration, o.renewDeadline = test.flag, 7*time.Second, 6*time.Second
			cfg, err := o.access.config()
			if err != nil {
				t.Fatal(err)
			}
			lock, err := o.newLease(cfg, &o.access)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("got %v, want an error with %q", err, test.wantErr)
				}
			} else if err != nil || lock.LeaseMeta.Namespace != test.want {
				t.Errorf("the lease is in %v, %v, want %q", lock, err, test.want)
			}
			if requests != test.requests {
				t.Errorf("%d requests, want %d", requests, test.requests)
			}
		})
	}
}

func TestLeaseNamespaceWhenTheServerDoesNotAnswer(t *testing.T) {
	useKubeconfig(t, "http://127.0.0.1:1")
	o := leaseOptions{leaseDuration: 7 * time.Second, renewDeadline: 6 * time.Second}
	if _, err := o.newLease(&rest.Config{Host: "http://127.0.0.1:1"}, &access{}); err == nil {
		t.Error("a lease without a known namespace is accepted")
	}
}

func TestContextSelectsTheCluster(t *testing.T) {
	useKubeconfig(t, "http://127.0.0.1:1")
	for context, want := range map[string]string{"": "", "other": "", "missing": `context "missing" does not exist`} {
		cfg, err := (&access{context: context}).config()
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: got %v, want an error with %q", context, err, want)
		case want == "" && (err != nil || cfg.Host != "http://127.0.0.1:1"):
			t.Errorf("%q: got %v, %v", context, cfg, err)
		}
	}
}

// A kubeconfig that is named is that of another cluster than the pod's own.
func TestAProcessWithAKubeconfigDoesNotUseThePodsCluster(t *testing.T) {
	_, err := os.Stat(podNamespace)
	inPod := err == nil
	t.Setenv("KUBECONFIG", "")
	if got := (&access{}).inPod(); got != inPod {
		t.Errorf("without a kubeconfig: got %v, want %v", got, inPod)
	}
	if (&access{context: "other"}).inPod() {
		t.Error("with a context, it uses the cluster of the pod")
	}
	t.Setenv("KUBECONFIG", "/a/kubeconfig")
	if (&access{}).inPod() {
		t.Error("with KUBECONFIG, it uses the cluster of the pod")
	}
}
