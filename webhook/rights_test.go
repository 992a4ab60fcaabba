// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// The story makes the webhook look at all that it looks at, under the rights that
// are shipped. It must go well with all of them, use each, and fail without any
// one.
var _ = Describe("the webhook's rights", Serial, Ordered, ContinueOnFailure, func() {
	shipped, err := testenv.Rights("config/webhook/generated/role.yaml", testenv.Every)
	if err != nil {
		panic(err) // Without rights there is no row to report it in.
	}
	BeforeAll(func() {
		stop()
		DeferCleanup(func() { start(env.Config) })
	})

	It("are all that it needs, and it uses all of them", func(ctx SpecContext) {
		requests, err := runStory(ctx, shipped)
		Expect(err).NotTo(HaveOccurred())
		unused, beyond := testenv.Compare(shipped, requests)
		Expect(unused).To(BeEmpty(), "the rights that no request needed")
		Expect(beyond).To(BeEmpty(), "requests that are allowed by other rights")
	})

	for i, right := range shipped {
		It("include no right that is not needed: "+right.String(), func(ctx SpecContext) {
			_, err := runStory(ctx, slices.Delete(slices.Clone(shipped), i, i+1))
			Expect(err).To(HaveOccurred(), "all goes well without the right to %s: it is not needed, remove its marker", right)
			var refused *testenv.RefusedError
			Expect(errors.As(err, &refused)).To(BeTrue(), "%v", err)
			Expect(refused.Request).To(Satisfy(right.Allows), "it is another right that is missing")
		})
	}
})

// runStory runs the webhook as a user of these rights alone and lives through the
// story, until a request is refused: then the error is a *RefusedError. It returns
// the requests of the webhook.
func runStory(ctx context.Context, rights []testenv.Right) ([]testenv.Request, error) {
	GinkgoHelper()
	// The namespace's name is new, so it does for a user as well.
	namespace := newNamespace()
	user, err := env.User(namespace)
	Expect(err).NotTo(HaveOccurred())
	revoke, err := env.Grant(ctx, namespace, rights)
	DeferCleanup(func() { Expect(revoke()).To(Succeed()) })
	Expect(err).NotTo(HaveOccurred())
	start(user)
	DeferCleanup(func() { stop() })
	s := &story{namespace: namespace}
	warned := rest.CopyConfig(env.Config)
	warned.WarningHandler = s
	s.client, err = client.New(warned, client.Options{Scheme: env.Client.Scheme()})
	Expect(err).NotTo(HaveOccurred())

	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = env.UntilRefused(ctx, namespace, s.live)
	requests, readErr := env.Requests(namespace)
	Expect(readErr).NotTo(HaveOccurred())
	return requests, err
}

// story is what a user does in one namespace, and the warnings that must come.
type story struct {
	namespace string
	client    client.Client

	mu       sync.Mutex
	warnings []string
}

// HandleWarningHeader notes a warning that the API server passes on.
func (s *story) HandleWarningHeader(_ int, _ string, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warnings = append(s.warnings, text)
}

func (s *story) live(ctx context.Context) error {
	if err := s.warned(ctx, "absent", `no Deployment "absent"`); err != nil {
		return err
	}
	for _, obj := range []client.Object{s.deployment("scaled"), s.deployment("held"), s.scaler("scaled"), s.united("older", "held")} {
		if err := env.Client.Create(ctx, obj); err != nil {
			return err
		}
	}
	return errors.Join(
		s.warned(ctx, "scaled", `HorizontalPodAutoscaler "scaled" scales`),
		s.warned(ctx, "held", `"older" is older`),
	)
}

// warned tries to hold a Deployment until that is warned of. A read that takes
// long, as the first may, is no warning.
func (s *story) warned(ctx context.Context, deployment, want string) error {
	var warnings []string
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		s.mu.Lock()
		s.warnings = nil
		s.mu.Unlock()
		if err := s.client.Create(ctx, s.united("younger", deployment), client.DryRunAll); err != nil {
			return false, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		warnings = s.warnings
		return slices.ContainsFunc(warnings, func(text string) bool { return strings.Contains(text, want) }), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the warning %q, having %q: %w", want, warnings, err)
	}
	return nil
}

func (s *story) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

func (s *story) deployment(name string) client.Object {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: s.named(name), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c:1"}}},
		},
	}}
}

func (s *story) scaler(name string) client.Object {
	return &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: s.named(name), Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, MaxReplicas: 3,
	}}
}

func (s *story) united(name, deployment string) client.Object {
	return &extensionv1.UnitedDeployment{ObjectMeta: s.named(name), Spec: extensionv1.UnitedDeploymentSpec{
		DeploymentName: deployment, Replicas: new(int32(2)),
	}}
}
