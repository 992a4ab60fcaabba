// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package spans

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A reconcile ends as it would without tracing, and of an error only the reason is recorded.
func TestReconciler(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "modelboxes"}, "box", errors.New("secret"))
	for name, test := range map[string]struct {
		result reconcile.Result
		err    error
		want   map[attribute.Key]string
	}{
		"success":       {want: map[attribute.Key]string{"result": "success"}},
		"requeue after": {result: reconcile.Result{RequeueAfter: time.Minute}, want: map[attribute.Key]string{"result": "requeue_after", "requeueAfter": "1m0s"}},
		"conflict":      {err: errors.Join(fmt.Errorf("writing status: %w", conflict)), want: map[attribute.Key]string{"result": "error", "error.type": "Conflict"}},
		"another error": {err: errors.New("secret"), want: map[attribute.Key]string{"result": "error", "error.type": "_OTHER"}},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := tracetest.NewSpanRecorder()
			tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("")
			inner := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) { return test.result, test.err })
			r := Reconciler(tracedManager{tracer: tracer}, "ModelBox", inner)
			result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "box"}})
			if result != test.result || !errors.Is(err, test.err) {
				t.Errorf("%v, %v", result, err)
			}
			ended := recorder.Ended()
			if len(ended) != 1 || ended[0].Name() != "reconcile ModelBox" {
				t.Fatalf("spans: %v", ended)
			}
			got := map[attribute.Key]string{}
			for _, attribute := range ended[0].Attributes() {
				got[attribute.Key] = attribute.Value.AsString()
			}
			want := map[attribute.Key]string{"kind": "ModelBox", "namespace": "team", "name": "box", "reconcileID": ""}
			maps.Copy(want, test.want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("attributes (-want +got):\n%s", diff)
			}
			if status := ended[0].Status(); (status.Code == codes.Error) != (test.err != nil) || status.Description != "" {
				t.Errorf("status: %v", status)
			}
			if len(ended[0].Events()) > 0 {
				t.Errorf("events: %v", ended[0].Events())
			}
		})
	}
}
