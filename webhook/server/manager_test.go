// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
	"github.com/modelbox-operator/modelbox-operator/kinds/app"
	"github.com/modelbox-operator/modelbox-operator/test/certificates"
)

// defaulter is what users of controller-runtime write.
type defaulter struct{}

func (defaulter) Default(_ context.Context, obj *appv1.App) error {
	app.Default(obj, nil, nil)
	return nil
}

// TestInAnyManager: a manager serves webhooks that controller-runtime builds, with this
// server in the place of its own.
func TestInAnyManager(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificates.New("webhook", 1)
	for file, data := range map[string][]byte{"tls.crt": cert, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	addresses, err := freeport.Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Addr: addresses[0], CertDir: dir})
	mgr, err := ctrl.NewManager(&rest.Config{}, manager.Options{WebhookServer: s, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := appv1.AddToScheme(mgr.GetScheme()); err != nil {
		t.Fatal(err)
	}
	if err := ctrl.NewWebhookManagedBy(mgr, &appv1.App{}).WithDefaulter(defaulter{}).Complete(); err != nil {
		t.Fatal(err)
	}
	mgr.GetWebhookServer().Register("/handler", &admission.Webhook{
		Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Denied("not today") }),
	})
	started := s.StartedChecker()
	if started(nil) == nil {
		t.Error("started before Start")
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	for deadline := time.Now().Add(20 * time.Second); started(nil) != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not started: ", started(nil))
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	for path, want := range map[string]string{"/mutate-app-huolala-cn-v1-app": `"patchType":"JSONPatch"`, "/handler": "not today"} {
		r, err := client.Post("https://"+addresses[0]+path, "application/json", strings.NewReader(review))
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != http.StatusOK || !strings.Contains(string(answer), want) {
			t.Errorf("%s: %d %s, want %s", path, r.StatusCode, answer, want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if started(nil) == nil {
		t.Error("started after the end")
	}
}
