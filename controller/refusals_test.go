// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// refusal is an error response of the API server, of a webhook or of a proxy that is the same
// after a retry.
type refusal struct {
	code   int
	reason metav1.StatusReason
}

var refusals = []refusal{
	{http.StatusBadRequest, metav1.StatusReasonBadRequest},
	{http.StatusBadRequest, ""},
	{http.StatusForbidden, metav1.StatusReasonForbidden},
	{http.StatusForbidden, ""},
	{http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed},
	{http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge},
	{http.StatusUnprocessableEntity, metav1.StatusReasonInvalid},
	{http.StatusUnprocessableEntity, ""},
	{http.StatusTeapot, "a policy's own words"},
	{http.StatusInternalServerError, metav1.StatusReasonInternalError},
	{http.StatusInternalServerError, ""},
	{http.StatusInsufficientStorage, ""},
}

// error returns the response, with a message that is longer than that of a condition.
func (r refusal) error() error {
	message := fmt.Sprintf("answer %d: %s", r.code, strings.Repeat("箱 ", 40_000))
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: int32(r.code), Reason: r.reason, Message: message}}
}

// intercepted returns a client whose writes a function sends, with their verb or subresource.
func intercepted(send func(verb string, obj any, do func() error) error) client.WithWatch {
	return interceptor.NewClient(env.Client, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return send("create", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return send("delete", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			verb := "patch"
			if patch.Type() == types.ApplyPatchType {
				verb = "apply"
			}
			return send(verb, obj, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return send("update", obj, func() error { return c.Update(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return send(sub, obj, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
}

// refusing returns a client that gets the response for the writes that match.
func refusing(answer error, matches func(verb string, obj any) bool) client.Client {
	return intercepted(func(verb string, obj any, do func() error) error {
		if matches(verb, obj) {
			return answer
		}
		return do()
	})
}

var _ = Describe("a response that refuses a write", Ordered, func() {
	BeforeAll(alone)
	ctx := context.Background()
	newBox := func() *modelv1.ModelBox {
		GinkgoHelper()
		return createBox(ctx, func(s *modelv1.ModelBoxSpec) { s.Ports = []modelv1.Port{{Port: 80}} })
	}
	reconciled := func() *modelv1.ModelBox {
		GinkgoHelper()
		box := newBox()
		Expect(reconcileWith(ctx, env.Client, box)).To(Succeed())
		return box
	}
	says := func(obj status.Object, r refusal) {
		GinkgoHelper()
		get(ctx, obj)
		ready := meta.FindStatusCondition(obj.GetConditions(), status.ConditionReady)
		Expect(ready).NotTo(BeNil(), "%d %s", r.code, r.reason)
		Expect(ready.Status).To(Equal(metav1.ConditionFalse))
		Expect(ready.ObservedGeneration).To(Equal(obj.GetGeneration()))
		Expect(ready.Message).To(ContainSubstring("answer %d", r.code))
	}

	DescribeTable("is quoted by the Ready condition of the current generation",
		func(prepare func() *modelv1.ModelBox, matches func(verb string, obj any) bool) {
			each(refusals, func(r refusal) {
				box := prepare()
				Expect(reconcileWith(ctx, refusing(r.error(), matches), box)).NotTo(Succeed(), "it is tried again")
				says(box, r)
				Expect(reconcileWith(ctx, env.Client, box)).To(Succeed())
				Expect(meta.FindStatusCondition(get(ctx, box).Status.Conditions, status.ConditionStalled)).To(BeNil())
			})
		},
		Entry("to the create of a Deployment", newBox, func(verb string, obj any) bool {
			_, ok := obj.(*appsv1.Deployment)
			return ok && verb == "create"
		}),
		Entry("to the create of a Service", newBox, func(verb string, obj any) bool {
			_, ok := obj.(*corev1.Service)
			return ok && verb == "create"
		}),
		Entry("to an apply", func() *modelv1.ModelBox {
			box := reconciled()
			change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Image = "nginx:2" })
			return box
		}, func(verb string, _ any) bool { return verb == "apply" || verb == "update" }),
		Entry("to the change of a child's field managers", func() *modelv1.ModelBox {
			box := reconciled()
			change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Image = "nginx:2" })
			return box
		}, func(verb string, _ any) bool { return verb == "patch" }),
		Entry("to the delete of a Service", func() *modelv1.ModelBox {
			box := reconciled()
			change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Ports = nil })
			return box
		}, func(verb string, _ any) bool { return verb == "delete" }),
	)

	It("is quoted by a UnitedDeployment as well", func() {
		each(refusals, func(r refusal) {
			named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
			existing(ctx, named)
			ud := united(named, "holder", 3)
			Expect(env.Client.Create(ctx, ud)).To(Succeed())
			c := refusing(r.error(), func(verb string, _ any) bool { return verb == "scale" })
			Expect(reconcileWith(ctx, c, ud)).NotTo(Succeed())
			says(ud, r)
		})
	})
})

// cached reads from the API server what a process reads from its cache: trimmed objects, and none of
// a kind that the cluster does not have.
type cached struct{ client.Client }

func (c cached) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	switch err := c.Client.Get(ctx, key, obj, opts...); {
	case meta.IsNoMatchError(err):
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	case err != nil:
		return err
	}
	return trim(obj)
}

func trim(obj runtime.Object) error {
	_, err := cache.Trim(obj)
	object := obj.(client.Object) // One of the own kinds has these still.
	object.SetLabels(nil)
	object.SetManagedFields(nil)
	return err
}

// List lists without the field index of the cache, which the API server does not have.
func (c cached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var kept []client.ListOption
	for _, opt := range opts {
		if _, index := opt.(client.MatchingFields); !index {
			kept = append(kept, opt)
		}
	}
	if err := c.Client.List(ctx, list, kept...); err != nil {
		return err
	}
	return meta.EachListItem(list, trim)
}
