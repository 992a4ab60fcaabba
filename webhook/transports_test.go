// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/modelbox-operator/modelbox-operator/test/stock"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

// webhooks returns the webhooks of all kinds by their paths.
func webhooks(t testing.TB) *http.ServeMux {
	t.Helper()
	mgr, err := newManager(&options{metrics: metricsOptions{address: "0"}, probeAddress: "0", pprofAddress: "0"})
	if err != nil {
		t.Fatal(err)
	}
	register(mgr.GetWebhookServer())
	return mgr.GetWebhookServer().WebhookMux()
}

// post sends a review to a webhook and returns the answer.
func post(webhook http.Handler, path, review string) []byte {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(review))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	webhook.ServeHTTP(w, r)
	return w.Body.Bytes()
}

// compare returns how an answer differs from that of controller-runtime's transport.
func compare(mux *http.ServeMux, path, review string, answer []byte) (string, error) {
	webhook, _ := mux.Handler(httptest.NewRequest(http.MethodPost, path, nil))
	return stock.Compare(webhook.(*admission.Webhook).Handler, []byte(review), answer)
}

// comparingManager is a manager on whose webhook server each request is answered by
// both transports.
type comparingManager struct{ manager.Manager }

func (m comparingManager) GetWebhookServer() ctrlwebhook.Server {
	return comparingServer{m.Manager.GetWebhookServer()}
}

type comparingServer struct{ ctrlwebhook.Server }

func (s comparingServer) Register(path string, hook http.Handler) {
	webhook := hook.(*admission.Webhook)
	s.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(review))
		once, answer := *webhook, httptest.NewRecorder()
		once.Handler = &sameResponse{Handler: webhook.Handler}
		once.ServeHTTP(answer, r)
		diff, err := stock.Compare(once.Handler, review, answer.Body.Bytes())
		comparisons.add(diff, err, review)
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
}

// sameResponse is a handler that gives the same request the same response again, whatever
// has changed in the cluster in between.
type sameResponse struct {
	ctrladmission.Handler
	req  *ctrladmission.Request
	resp ctrladmission.Response
}

func (r *sameResponse) Handle(ctx context.Context, req ctrladmission.Request) ctrladmission.Response {
	if r.req == nil || !reflect.DeepEqual(*r.req, req) {
		r.req = &ctrladmission.Request{AdmissionRequest: *req.DeepCopy()}
		r.resp = r.Handler.Handle(ctx, req)
	}
	return r.resp
}

// comparisons are those of all specs.
var comparisons comparisonLog

type comparisonLog struct {
	mu          sync.Mutex
	compared    int
	differences []string
}

func (l *comparisonLog) add(diff string, err error, review []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.compared++; diff != "" || err != nil {
		l.differences = append(l.differences, fmt.Sprintf("(-controller-runtime +ours): %v\n%s\n%s", err, diff, review))
	}
}

func (l *comparisonLog) result() (int, []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.compared, l.differences
}
