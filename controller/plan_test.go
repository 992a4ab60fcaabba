// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	gocmp "github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
	"github.com/modelbox-operator/modelbox-operator/cli/plan"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
)

// applier applies manifests as users do, with kubectl and through the webhooks, and compares what
// happens with the plan of it.
type applier struct {
	namespace  string
	serverSide bool
	// edited is that another manager has edited a child. One without a Go type is not compared then: only
	// the API server has the schema by which the first apply of the operator keeps the edit, or removes it.
	edited     bool
	controller *driven
}

// apply plans an apply, makes it, and reconciles the object. It returns nil if both the plan and the API
// server refuse the manifest.
func (a *applier) apply(ctx context.Context, text []byte) *plan.Object {
	GinkgoHelper()
	text = edited(text, fmt.Appendf(nil, `[{"op":"add","path":"/metadata/namespace","value":%q}]`, a.namespace))
	flags, planner := []string{"apply", "-n", a.namespace, "-f", "-"}, plan.Planner{Client: env.Client, Namespace: a.namespace, Apply: plan.Apply{Manager: plan.ClientSideManager}}
	if a.serverSide {
		flags, planner.Apply = append(flags, "--server-side"), plan.Apply{Manager: plan.ServerSideManager, ServerSide: true}
	}
	planned, refused := planner.Plan(ctx, manifest.Parse("manifest", text))
	_, err := env.Kubectl(string(text), flags...)
	if refused != nil || err != nil {
		AddReportEntry("refused", refused)
		Expect(refused).To(HaveOccurred(), "the API server refuses it: %v", err)
		Expect(err).To(HaveOccurred(), "the plan refuses it: %v", refused)
		return nil
	}
	owner := get(ctx, ownerOf(text, a.namespace))
	object := planned.Objects[0]
	Expect(gocmp.Diff(object.Stored.Object["spec"], stored(ctx, withKind(owner)).Object["spec"])).To(BeEmpty(), "the object (-planned +stored)")
	before, from := templateOf(ctx, owner), liveDeployment(ctx, owner)
	_, _, err = a.controller.reconcile(ctx, owner)
	Expect(err).NotTo(HaveOccurred())
	after, to := templateOf(ctx, owner), liveDeployment(ctx, owner)
	Expect(object.Restart != nil).To(Equal(before != nil && gocmp.Diff(before, after) != ""), "pods restart: %+v\n%s", object.Restart, gocmp.Diff(before, after))
	if to != nil {
		count(object, from, to)
	}
	for _, child := range object.Children {
		if _, untyped := child.(*unstructured.Unstructured); untyped && a.edited {
			continue
		}
		live, err := childOf(ctx, owner, child.GetObjectKind().GroupVersionKind().Kind)
		Expect(err).NotTo(HaveOccurred())
		Expect(gocmp.Diff(childContent(child), childContent(live))).To(BeEmpty(), "%s (-planned +live)", live.GetKind())
	}
	return object
}

// withKind returns an object with its kind, which a client leaves out.
func withKind(obj client.Object) client.Object {
	GinkgoHelper()
	gvk, err := env.Client.GroupVersionKindFor(obj)
	Expect(err).NotTo(HaveOccurred())
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj
}

// childContent returns what a plan knows of a child, in the form of its Go type.
func childContent(child client.Object) tree {
	GinkgoHelper()
	typed, err := env.Client.Scheme().New(child.GetObjectKind().GroupVersionKind())
	if runtime.IsNotRegisteredError(err) { // It has no Go type here.
		typed, err = &unstructured.Unstructured{}, nil
	}
	Expect(err).NotTo(HaveOccurred())
	text := strings.ReplaceAll(asJSON(child), version.ControllerImage, modelFetcher.Image) // That of the controller's flag is not known.
	Expect(json.Unmarshal([]byte(text), typed)).To(Succeed())
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	Expect(err).NotTo(HaveOccurred())
	out := content(&unstructured.Unstructured{Object: object})
	// The API server sets the last one while the type is LoadBalancer, which the plan keeps and does not show.
	return withoutKeys(out, append(slices.Clone(chosenByServer), "ipFamilies", "ipFamilyPolicy", "allocateLoadBalancerNodePorts")...).(tree)
}

// templateOf returns the pod template of an owner's child, nil if there is none.
func templateOf(ctx context.Context, owner client.Object) any {
	GinkgoHelper()
	for _, kind := range []string{"Deployment", "DaemonSet"} {
		child, err := childOf(ctx, owner, kind)
		if Expect(client.IgnoreNotFound(err)).To(Succeed()); err == nil {
			return childContent(child)["spec"].(tree)["template"]
		}
	}
	return nil
}

// liveDeployment returns the Deployment of an owner, nil if there is none.
func liveDeployment(ctx context.Context, owner client.Object) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	err := env.Client.Get(ctx, client.ObjectKeyFromObject(owner), d)
	if Expect(client.IgnoreNotFound(err)).To(Succeed()); err != nil {
		return nil
	}
	return d
}

// count counts the pods that are created, and replaced, by what Kubernetes documents of a Deployment
// (https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#rolling-update-deployment),
// and compares that with a plan.
func count(planned *plan.Object, before, after *appsv1.Deployment) {
	GinkgoHelper()
	from, to := int32(0), *after.Spec.Replicas
	if before != nil {
		from = *before.Spec.Replicas
	}
	scale := plan.Scale{From: from, To: from}
	if planned.Scale != nil {
		scale = *planned.Scale
	}
	Expect([]int32{scale.From, scale.To}).To(Equal([]int32{from, to}), "the number of pods")
	if planned.Restart == nil {
		return
	}
	old, surge, unavailable := min(from, to), 0, int(to)
	if steps := after.Spec.Strategy.RollingUpdate; steps != nil {
		surge, _ = intstr.GetScaledValueFromIntOrPercent(steps.MaxSurge, int(to), true)
		unavailable, _ = intstr.GetScaledValueFromIntOrPercent(steps.MaxUnavailable, int(to), false)
		unavailable = min(unavailable, int(to))
		if surge == 0 && unavailable == 0 {
			unavailable = 1
		}
	}
	Expect(planned.Restart.Pods).To(Equal(old), "the replaced pods")
	Expect(int(planned.Restart.SparePods)).To(Equal(min(surge, int(old))), "the spare pods")
	Expect(int(planned.Restart.AtATime)).To(Equal(min(surge+unavailable, int(old))), "the pods at a time")
}

// edited returns a manifest with a JSON patch.
func edited(text, patch []byte) []byte {
	GinkgoHelper()
	decoded, err := jsonpatch.DecodePatch(patch)
	Expect(err).NotTo(HaveOccurred())
	out, err := decoded.Apply(text)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// The fields of every kind with pods, and those from which others are derived.
var plannedChanges = []specChange{
	{Of: "modelbox/everything", Patch: imagePatch("registry.example.com/planned:1")},
	{Of: "modelbox/everything", Patch: json.RawMessage(`[{"op":"add","path":"/spec/replicas","value":5}]`)},
	{Of: "modelbox/volumes", Patch: json.RawMessage(`[{"op":"add","path":"/spec/resourceType","value":"large"}]`)},
	{Of: "modelbox/volumes", Patch: json.RawMessage(`[{"op":"add","path":"/spec/ports","value":[{"port":81},{"port":82,"nodePort":30082}]}]`)},
	{Of: "modelbox/everything", Patch: json.RawMessage(`[{"op":"remove","path":"/spec/ports"}]`)},
	{Of: "modelbox/everything", Patch: json.RawMessage(`[{"op":"add","path":"/spec/paused","value":true},{"op":"replace","path":"/spec/image","value":"a:2"}]`)},
	{Of: "modelbox/model", Patch: imagePatch("registry.example.com/planned:1")},
	{Of: "app/everything", Patch: imagePatch("registry.example.com/planned:1")},
	{Of: "app/plain", Patch: json.RawMessage(`[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`)},
	{Of: "genericdaemon/everything", Patch: imagePatch("registry.example.com/planned:1")},
	{Of: "genericdaemon/everything", Patch: json.RawMessage(`[{"op":"add","path":"/spec/rollingUpdate","value":3}]`)},
}

// What plan predicts is what happens: for an edit of the corpus it names the restart of the pods if,
// and only if, their template changes, and the object and its children become those of the plan.
var _ = Describe("modelbox plan predicts an apply", Ordered, ContinueOnFailure, long, func() {
	a := &applier{}
	BeforeAll(func(ctx context.Context) {
		alone()
		installOptionalKinds()
		a.namespace = newNamespace()
		DeferCleanup(installWebhooks(ctx, a.namespace))
	})
	created := func(ctx context.Context, of string) status.Object {
		GinkgoHelper()
		sinceServed(of, removedFields)
		a.controller, a.edited = drive(), false
		owner := ownerOf(ownerManifests[of], a.namespace)
		DeferCleanup(func(ctx context.Context) {
			deleteOwner(ctx, owner)
			for kind := range childKinds {
				if child, err := childOf(ctx, owner, kind); err == nil {
					Expect(env.Client.Delete(ctx, child)).To(Succeed())
				}
			}
		})
		object := a.apply(ctx, ownerManifests[of])
		Expect(object).NotTo(BeNil(), "refused")
		Expect(object.Change).To(Equal(plan.Created))
		return owner
	}
	// A third of the rows, another one with each seed; make test-long takes all.
	sampled := func(i int) bool { return thoroughly || (int64(i)+GinkgoRandomSeed())%3 == 0 }
	known := readCorpus()
	for i, c := range append(known.Changes, plannedChanges...) {
		if !sampled(i) {
			continue
		}
		It(fmt.Sprintf("of a change of %s: %s", c.Of, c.Patch), func(ctx context.Context) {
			a.serverSide = i%2 == 1
			created(ctx, c.Of)
			if there := a.apply(ctx, edited(ownerManifests[c.Of], c.Patch)); there != nil {
				Expect(there.Change).To(Equal(plan.Configured))
				a.serverSide = true // Of what was applied on the client's side, in half of the rows.
				Expect(a.apply(ctx, ownerManifests[c.Of]).Change).To(Equal(plan.Configured))
			}
			again := a.apply(ctx, ownerManifests[c.Of])
			Expect(again.Change).To(Equal(plan.Unchanged), again.Diff)
		})
	}
	for i, e := range known.Edits {
		if !sampled(i) {
			continue
		}
		It(fmt.Sprintf("after an edit of the %s of %s by another manager: %s", e.Child, e.Of, e.Name), func(ctx context.Context) {
			a.serverSide = i%2 == 1
			owner := created(ctx, e.Of)
			live, err := childOf(ctx, owner, e.Child)
			Expect(err).NotTo(HaveOccurred())
			Expect(e.send(ctx, live)).To(Succeed())
			a.edited = true
			a.apply(ctx, ownerManifests[e.Of])
		})
	}
})
