// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/modelbox-operator/modelbox-operator/webhook/patch"
)

// endpoint is one webhook of one kind: everything about a request and its answer
// that does not depend on the kind's type.
type endpoint struct {
	gvk     schema.GroupVersionKind
	webhook string
	decide  func(context.Context, *request, *patch.Ops) (verdict, error)
	metrics *endpointMetrics
}

func newEndpoint(gvk schema.GroupVersionKind, webhook string, decide func(context.Context, *request, *patch.Ops) (verdict, error)) *endpoint {
	return &endpoint{gvk: gvk, webhook: webhook, decide: decide, metrics: metricsFor(gvk.Kind, webhook)}
}

// ServeHTTP answers a review. What is not a review that can be answered gets an
// HTTP status and a sentence, which the API server quotes to whoever is waiting.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	x := exchanges.Get().(*exchange)
	defer x.release()
	result, err := e.serve(r, x)
	e.metrics.observe(x.review.Request.Operation, result, time.Since(start))
	if err != nil {
		e.log().V(1).Info("Rejected", "remote", r.RemoteAddr, "reason", err.Error())
		reject(w, err)
		return
	}
	w.Header()["Content-Type"] = jsonContent
	if _, err := w.Write(x.answer); err != nil {
		e.log().V(1).Info("The answer could not be sent", "uid", x.review.Request.UID.String(), "reason", err.Error())
	}
}

// serve reads a review and leaves the answer in x. A panic, in a rule or here, is
// one request's misfortune: it gets an answer, and the process lives.
func (e *endpoint) serve(r *http.Request, x *exchange) (result result, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			result, err = e.panicked(cause, x)
		}
	}()
	if err := x.receive(r); err != nil {
		return failed, err
	}
	return e.answer(r.Context(), x), nil
}

func (e *endpoint) panicked(cause any, x *exchange) (result, error) {
	e.metrics.panics.Inc()
	err := fmt.Errorf("the %s webhook for %s panicked: %v", e.webhook, e.gvk.Kind, cause)
	uid := x.review.Request.UID
	e.log().Error(err, "Recovered", "uid", uid.String(), "stack", string(debug.Stack()))
	if uid.empty() {
		return failed, &rejection{http.StatusInternalServerError, err.Error()}
	}
	return x.fail(internal(err)), nil
}

func (e *endpoint) answer(ctx context.Context, x *exchange) result {
	request := &x.review.Request
	if request.untouched() {
		return x.settle(allowed)
	}
	if bad := e.misdirected(request); bad != "" {
		return x.fail(badRequest(bad))
	}
	v, err := e.decide(ctx, request, &x.ops)
	if err != nil {
		e.log().Error(err, "Answered with an internal error", "uid", request.UID.String())
		return x.fail(internal(err))
	}
	return x.settle(v)
}

// misdirected says why a request cannot be decided here, "" if it can.
func (e *endpoint) misdirected(r *request) string {
	switch {
	case !r.Kind.is(e.gvk):
		return fmt.Sprintf("the %s webhook for %s was sent a %s: check the path in the webhook configuration", e.webhook, e.gvk, r.Kind)
	case !r.Operation.is("CREATE") && !r.Operation.is("UPDATE"):
		return fmt.Sprintf("unknown operation %q: CREATE, UPDATE, DELETE or CONNECT is expected", r.Operation)
	case r.Object.absent():
		return fmt.Sprintf("the request to %s has no object", r.Operation)
	}
	return ""
}

func (e *endpoint) log() logr.Logger {
	return log.Log.WithName("admit").WithValues("kind", e.gvk.Kind, "webhook", e.webhook)
}
