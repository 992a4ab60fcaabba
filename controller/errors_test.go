// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// Each read and each write of a reconcile fails, one after the other, with each kind of error and another text each time.
// Every reconcile ends in a status within 30 seconds, and what does not depend on the failure is done.
var _ = Describe("an error in any request", Ordered, func() {
	BeforeAll(alone)

	referring := []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}}},
	}
	objects := map[string]guarantee{"UnitedDeployment": guarantees["UnitedDeployment"], "Eru": guarantees["Eru"]}
	objects["ModelBox"] = guarantee{
		object: func(named metav1.ObjectMeta) status.Object {
			return &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{
				Image: "a:1", Ports: []modelv1.Port{{Port: 80}}, EnvFrom: referring, RestartOnChange: modelv1.RestartOnChangeReferenced,
				Children: modelv1.Children{Disruption: &modelv1.Disruption{MaxUnavailable: new(intstr.FromInt32(1))}, Autoscaling: &modelv1.Autoscaling{MaxReplicas: 5}},
			}}
		},
		after: rollOut,
		edit:  func(obj status.Object) { obj.(*modelv1.ModelBox).Spec.Image = "a:2" },
	}
	objects["Genericdaemon"] = guarantee{
		object: func(named metav1.ObjectMeta) status.Object {
			return &mydomainv1beta1.Genericdaemon{ObjectMeta: named, Spec: mydomainv1beta1.GenericdaemonSpec{
				Image: "a:1", EnvFrom: referring, RestartOnChange: modelv1.RestartOnChangeReferenced,
			}}
		},
		after: rollOutDaemon,
		edit:  func(obj status.Object) { obj.(*mydomainv1beta1.Genericdaemon).Spec.Image = "a:2" },
	}

	// seen is a client all of whose requests pass a function, with their verb and kind.
	seen := func(pass func(request string, do func() error) error) client.Client {
		name := func(verb string, obj any) string {
			return verb + " " + strings.TrimSuffix(kindOf(obj.(interface{ client.Object })), "List")
		}
		writes := intercepted(func(verb string, obj any, do func() error) error { return pass(name(verb, obj), do) })
		return interceptor.NewClient(writes, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				return pass(name("get", obj), func() error { return c.Get(ctx, key, obj, opts...) })
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				return pass("list "+strings.TrimPrefix(fmt.Sprintf("%T", list), "*"), func() error { return c.List(ctx, list, opts...) })
			},
		})
	}
	// prepare returns an object that was reconciled and is ready, and then changed, and so was what it refers to.
	prepare := func(ctx context.Context, kind string) status.Object {
		GinkgoHelper()
		g, named := objects[kind], metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
		settings := configMap(named.Namespace, "settings", "1")
		Expect(env.Client.Create(ctx, settings)).To(Succeed())
		Expect(env.Client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: "keys"}})).To(Succeed())
		if g.before != nil {
			g.before(ctx, named)
		}
		obj := g.object(named)
		Expect(env.Client.Create(ctx, obj)).To(Succeed())
		DeferCleanup(deleteOwner, obj) // It refers to a Secret, which controllers of other specs may not list.
		for range 2 {
			Expect(reconcileWith(ctx, env.Client, obj)).To(Succeed())
			g.after(ctx, named)
		}
		change(ctx, obj, g.edit)
		change(ctx, settings, setValue("2"))
		return obj
	}
	failures := map[string]func(text string) error{
		"refused": func(text string) error {
			return apierrors.NewForbidden(schema.GroupResource{}, "web", errors.New(text))
		},
		"internal":    func(text string) error { return apierrors.NewInternalError(errors.New(text)) },
		"conflict":    func(text string) error { return apierrors.NewConflict(schema.GroupResource{}, "web", errors.New(text)) },
		"unavailable": func(text string) error { return apierrors.NewServiceUnavailable(text) },
		"timeout":     func(text string) error { return apierrors.NewTimeoutError(text, 1) },
		"overloaded":  func(text string) error { return apierrors.NewTooManyRequests(text, 1) },
		"another": func(text string) error { // Its message is longer than one of a condition.
			message := text + strings.Repeat("箱 ", 40_000)
			return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusTeapot, Reason: "a policy's own words", Message: message}}
		},
		"no response": func(text string) error { return errors.New(text) },
	}

	for _, kind := range slices.Sorted(maps.Keys(objects)) {
		It("ends in a status of a "+kind, func(ctx SpecContext) {
			requests := map[string]bool{}
			recorded := seen(func(request string, do func() error) error {
				requests[request] = true
				return do()
			})
			Expect(reconcileWith(ctx, recorded, prepare(ctx, kind))).To(Succeed())
			delete(requests, "get "+kind)    // Nothing is known of an object that cannot be read,
			delete(requests, "status "+kind) // and nothing can be said of one that cannot be written.
			Expect(requests).NotTo(BeEmpty())
			for i, request := range slices.Sorted(maps.Keys(requests)) {
				for j, name := range slices.Sorted(maps.Keys(failures)) {
					if of := len(failures); !thoroughly && j != i%of && j != int(GinkgoRandomSeed()+int64(3*i+1))%of {
						continue // Each request fails in two ways, one of them another one with each seed.
					}
					what, n, failure := kind+": "+request+": "+name, 0, failures[name]
					obj := prepare(ctx, kind)
					clk := clocktesting.NewFakePassiveClock(time.Now())
					live := seen(func(sent string, do func() error) error {
						if n++; sent == request {
							return failure(fmt.Sprintf("at %d", n))
						}
						return do()
					})
					writer, texts := writerWith(live, live), map[string]bool{}
					writer.Client = limit.New(writer.Client, clk) // The limiter knows it by its type.
					reconciler := reconcilerOf(kind, writer, clk)
					for range 4 {
						_, _ = reconciler.Reconcile(ctx, requestFor(obj))
						clk.SetTime(clk.Now().Add(9 * time.Second))
					}
					Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
					ready := meta.FindStatusCondition(obj.GetConditions(), status.ConditionReady)
					Expect(ready).NotTo(BeNil(), what)
					Expect(ready.ObservedGeneration).To(Equal(obj.GetGeneration()), what)
					Expect(ready.Status).NotTo(Equal(metav1.ConditionTrue), what)
					Expect(ready.Message).To(Or(ContainSubstring("at "), ContainSubstring("may not be read by the operator")), what)
					for range 6 {
						_, _ = reconciler.Reconcile(ctx, requestFor(obj))
						Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
						texts[meta.FindStatusCondition(obj.GetConditions(), status.ConditionReady).Message] = true
					}
					Expect(len(texts)).To(BeNumerically("<=", 2), "%s: %v", what, texts)
					if kind == "ModelBox" && !strings.HasSuffix(request, "Deployment") {
						deployment := get(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: "web"}})
						Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal("a:2"), what)
					}
				}
			}
		})
	}
})
