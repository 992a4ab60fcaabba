// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

var deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}

func response(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: "no"}}
}

func terminating() error {
	err := apierrors.NewForbidden(deployments, "box", errors.New("namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

func TestReadinessOf(t *testing.T) {
	for _, test := range []struct {
		name    string
		err     error
		reason  string
		stalled bool
		retried bool
	}{
		{name: "no error"},
		{name: "a readiness", err: status.NewStalled(status.ReasonNameConflict, "x"), reason: status.ReasonNameConflict, stalled: true},
		{name: "forbidden", err: Refused("creating", deployment(), apierrors.NewForbidden(deployments, "box", errors.New("no"))),
			reason: status.ReasonChildRefused, stalled: true, retried: true},
		{name: "invalid", err: Refused("creating", deployment(), apierrors.NewInvalid(schema.GroupKind{}, "box", nil)),
			reason: status.ReasonChildRefused, stalled: true, retried: true},
		{name: "a webhook that is not available", err: Refused("creating", deployment(), apierrors.NewInternalError(errors.New("no endpoints"))),
			reason: status.ReasonChildRefused, stalled: true, retried: true},
		{name: "a terminating namespace", err: Refused("creating", deployment(), terminating()), reason: status.ReasonTerminating, stalled: true},
		{name: "a conflict", err: Refused("applying", deployment(), apierrors.NewConflict(deployments, "box", errors.New("changed"))), retried: true},
		{name: "a child that is not in the cache yet", err: Refused("creating", deployment(), apierrors.NewAlreadyExists(deployments, "box")), retried: true},
		{name: "too many requests", err: Refused("creating", deployment(), apierrors.NewTooManyRequests("later", 1)), retried: true},
		{name: "a reset connection", err: Refused("creating", deployment(), errors.New("connection reset")), retried: true},
		{name: "a response without a reason, such as for a list with the same key twice", err: Refused("applying", deployment(), response(500, "")),
			reason: status.ReasonChildRefused, stalled: true, retried: true},
		{name: "a bad request without a reason", err: Refused("applying", deployment(), response(400, "")),
			reason: status.ReasonChildRefused, stalled: true, retried: true},
		{name: "a gateway without a server", err: Refused("applying", deployment(), response(502, "")), retried: true},
		{name: "too many requests without a reason", err: Refused("applying", deployment(), response(429, "")), retried: true},
		{name: "a child that was deleted meanwhile", err: Refused("applying", deployment(), apierrors.NewNotFound(deployments, "box")), retried: true},
		{name: "a namespace that does not exist", err: Refused("creating", deployment(), apierrors.NewNotFound(deployments, "box")),
			reason: status.ReasonChildRefused, stalled: true, retried: true},
		{name: "a contested field", err: &limit.ContestedError{Manager: "hpa"}, reason: status.ReasonContested, stalled: true, retried: true},
		{name: "a deleted owner", err: ErrOwnerGone, retried: true},
		{name: "a stale owner", err: fmt.Errorf("%w 1", ErrStale), retried: true},
		{name: "shutting down", err: context.Canceled, retried: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			readiness, err := ReadinessOf(test.err)
			if got := err != nil; got != test.retried {
				t.Errorf("retried is %t (%v), want %t", got, err, test.retried)
			}
			if readiness == nil {
				readiness = &status.Readiness{}
			}
			if readiness.Reason != test.reason || readiness.Stalled != test.stalled {
				t.Errorf("the readiness is %+v, want reason %q and stalled %t", readiness, test.reason, test.stalled)
			}
			if readiness.Ready {
				t.Error("an error is never ready")
			}
		})
	}
}
