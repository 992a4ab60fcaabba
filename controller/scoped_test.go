// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// operator is a controller that is limited to namespaces, with Roles there and no ClusterRole.
type operator struct {
	// own is the namespace of the controller, its lease and its service account.
	own, user  string
	namespaces []string
}

// permissions returns the permissions of the shipped roles, limited to the operator's namespaces.
func (o *operator) permissions() []testenv.Permission {
	GinkgoHelper()
	shipped, err := testenv.Permissions("config/controller/generated/role.yaml", testenv.Every)
	Expect(err).NotTo(HaveOccurred())
	var limited []testenv.Permission
	for _, permission := range shipped {
		switch {
		case permission.Namespace != "":
			permission.Namespace = o.own
			limited = append(limited, permission)
			continue
		case permission.Group == eventsv1.GroupName: // Those about the lease.
			permission.Namespace = o.own
			limited = append(limited, permission)
		}
		for _, permission.Namespace = range o.namespaces {
			limited = append(limited, permission)
		}
	}
	return limited
}

func newOperator(ctx context.Context, namespaces ...string) *operator {
	GinkgoHelper()
	o := &operator{own: newNamespace(), namespaces: namespaces}
	o.user = testenv.ServiceAccount(o.own, "modelbox-controller")
	grant(ctx, o.user, o.permissions())
	// Another user, because no request of the operator may be refused.
	probe, err := env.As(testenv.ServiceAccount(o.own, "probe"))
	Expect(err).NotTo(HaveOccurred())
	Expect(env.BindControllers(ctx, "-"+o.own, testenv.ServiceAccount(o.own, ""), probe)).To(Succeed())
	return o
}

// run starts the controller of the operator.
func (o *operator) run() *process {
	GinkgoHelper()
	return runAs(o.user, func(flags *options) {
		flags.leaderNamespace, flags.namespaces = o.own, o.namespaces
	})
}

// requests returns the requests for resources since the mark, without those for the lease.
func (o *operator) requests(mark int) (requests []testenv.Request, next int) {
	GinkgoHelper()
	all, err := env.Requests(o.user)
	Expect(err).NotTo(HaveOccurred())
	for _, r := range all[mark:] {
		if r.Resource != "" && r.Resource != "leases" {
			requests = append(requests, r)
		}
	}
	return requests, len(all)
}

// expectNothingElse checks that the operator sent no request outside its namespaces, and that
// none was refused.
func (o *operator) expectNothingElse() {
	GinkgoHelper()
	Expect(env.Refused(o.user)).To(Succeed())
	requests, _ := o.requests(0)
	allowed := append(slices.Clone(o.namespaces), o.own)
	Expect(slices.DeleteFunc(requests, func(r testenv.Request) bool { return slices.Contains(allowed, r.Namespace) })).To(BeEmpty())
}

// observed returns how many objects of all kinds in a namespace have a Ready condition.
func observed(ctx context.Context, namespace string) func() int {
	return func() int {
		count := 0
		for _, g := range guarantees {
			obj := g.object(metav1.ObjectMeta{Namespace: namespace, Name: "web"})
			if env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj) == nil && meta.FindStatusCondition(obj.GetConditions(), status.ConditionReady) != nil {
				count++
			}
		}
		return count
	}
}

var _ = Describe("two operators, each with namespaces of its own", func() {
	BeforeEach(alone)

	It("reconcile only their own objects, with Roles there and no ClusterRole", func(ctx SpecContext) {
		a1, a2, b1, other := newNamespace(), newNamespace(), newNamespace(), newNamespace()
		a, b := newOperator(ctx, a1, a2), newOperator(ctx, b1)
		for _, namespace := range []string{a1, a2, b1, other} {
			DeferCleanup(removeAll, namespace)
			for _, g := range guarantees {
				Expect(env.Client.Create(ctx, g.object(metav1.ObjectMeta{Namespace: namespace, Name: "web"}))).To(Succeed())
			}
		}
		for _, o := range []*operator{a, b} {
			DeferCleanup(o.run().end)
		}
		for _, namespace := range []string{a1, a2, b1} {
			Eventually(observed(ctx, namespace)).WithTimeout(time.Minute).Should(Equal(len(guarantees)), namespace)
		}

		By("each holds a lease in its own namespace")
		holders := map[string]bool{}
		for _, o := range []*operator{a, b} {
			holders[*get(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: o.own, Name: electionID}}).Spec.HolderIdentity] = true
		}
		Expect(holders).To(HaveLen(2))

		By("a change in each namespace is seen, by its operator alone")
		for _, namespace := range []string{a1, a2, b1, other} {
			box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "later"}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
			Expect(env.Client.Create(ctx, box)).To(Succeed())
			if namespace != other {
				child := &appsv1.Deployment{ObjectMeta: box.ObjectMeta}
				Eventually(env.Client.Get).WithArguments(ctx, client.ObjectKeyFromObject(child), child).Should(Succeed())
				Expect(env.Client.Delete(ctx, child)).To(Succeed())
				Eventually(env.Client.Get).WithArguments(ctx, client.ObjectKeyFromObject(child), child).Should(Succeed())
			}
		}
		Expect(observed(ctx, other)()).To(BeZero())
		a.expectNothingElse()
		b.expectNothingElse()

		By("a stolen token of one is of no use in the namespaces of the other")
		cfg, err := env.User(a.user)
		Expect(err).NotTo(HaveOccurred())
		box := get(ctx, &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: b1, Name: "later"}})
		for name, r := range map[string]request{
			"a child":         creates(deploymentOf(owned(b1, "later", box))),
			"a replica count": patchesSubresource(deploymentOf(metav1.ObjectMeta{Namespace: b1, Name: "later"}), "scale", `{"spec":{"replicas":0}}`),
			"a restart": patches(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: b1, Name: "later"}}, func(d *appsv1.Deployment) {
				d.Spec.Template.Annotations = map[string]string{api.AnnotationRestartedAt: "2026-01-01T00:00:00Z"}
			}),
			"the other's lease": patches(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: b.own, Name: electionID}}, func(l *coordinationv1.Lease) {
				l.Spec.HolderIdentity = new("thief")
			}),
		} {
			Expect(r(ctx, cfg)).To(Satisfy(apierrors.IsForbidden), name)
		}
	})

	It("list once at a start, and write nothing then", func(ctx SpecContext) {
		a1, a2 := newNamespace(), newNamespace()
		a := newOperator(ctx, a1, a2)
		for _, namespace := range a.namespaces {
			DeferCleanup(removeAll, namespace)
			for i := range 5 {
				named := metav1.ObjectMeta{Namespace: namespace, Name: "box-" + string(rune('a'+i))}
				Expect(env.Client.Create(ctx, &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{Image: "nginx:1", Ports: []modelv1.Port{{Port: 80}}}})).To(Succeed())
			}
		}
		process := a.run()
		for _, namespace := range a.namespaces {
			for i := range 5 {
				box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "box-" + string(rune('a'+i))}}
				Eventually(readiness(ctx, box)).WithTimeout(time.Minute).Should(Equal("False Progressing"))
			}
		}
		Expect(process.end()).To(Succeed())
		_, mark := a.requests(0)
		DeferCleanup(a.run().end)
		// The last one is reconciled when the others have been queued.
		last := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: a2, Name: "last"}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
		Expect(env.Client.Create(ctx, last)).To(Succeed())
		Eventually(readiness(ctx, last)).WithTimeout(time.Minute).Should(Equal("False Progressing"))
		requests, _ := a.requests(mark)
		perInformer := map[string]int{}
		for _, r := range requests {
			switch {
			case r.Resource == "pods": // Of the objects that are not ready, for their status.
			case r.Verb == "list" || r.Verb == "watch":
				perInformer[r.Namespace+" "+r.Resource]++
			case r.Resource != "events":
				Expect(r.Namespace+"/"+r.Name).To(Equal(a2+"/last"), "%s %s: a request for an object that has not changed", r.Verb, r.Resource)
				Expect(r.Verb + " " + r.Resource).To(BeElementOf("create deployments", "get deployments", "get modelboxes", "patch modelboxes"))
			}
		}
		// The five kinds, Deployments, DaemonSets, Services and autoscalers, and a look for PodDisruptionBudgets.
		Expect(perInformer).To(HaveLen(10 * len(a.namespaces)))
		most := 2
		if lacks(34, "watches that begin with a list") != "" {
			most++ // One watch is the test whether it may begin with a list.
		}
		for informer, count := range perInformer {
			limit := most
			if strings.HasSuffix(informer, " deployments") {
				limit++ // One list is the test whether the namespace may be listed.
			}
			Expect(count).To(BeNumerically("<=", limit), informer)
		}
	})

	It("serve the other namespaces without one that may not be listed, and end when it may be", func(ctx SpecContext) {
		served, other := newNamespace(), newNamespace()
		a := newOperator(ctx, served)
		others := &operator{own: a.own, user: a.user, namespaces: []string{other}}
		a.namespaces = append(a.namespaces, other)
		for _, namespace := range a.namespaces {
			DeferCleanup(removeAll, namespace)
			for _, g := range guarantees {
				Expect(env.Client.Create(ctx, g.object(metav1.ObjectMeta{Namespace: namespace, Name: "web"}))).To(Succeed())
			}
		}
		ended, _ := a.main(ctx)
		Eventually(observed(ctx, served)).WithTimeout(time.Minute).Should(Equal(len(guarantees)))
		Expect(observed(ctx, other)()).To(BeZero())
		Expect(leftOut(other)).To(BeTrue())
		Expect(leftOut(served)).To(BeFalse())
		Consistently(ended, 500*time.Millisecond).ShouldNot(Receive())

		By("its Role comes back")
		revoke, err := env.Grant(ctx, a.user, others.permissions())
		Expect(err).NotTo(HaveOccurred())
		Eventually(ended).WithTimeout(time.Minute).Should(Receive(MatchError(cache.ErrListable)))
		ended, end := a.main(ctx)
		Eventually(observed(ctx, other)).WithTimeout(time.Minute).Should(Equal(len(guarantees)))

		By("its Role is deleted while the process runs")
		Expect(revoke()).To(Succeed())
		later := func(name string) {
			GinkgoHelper()
			box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: name}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
			Expect(env.Client.Create(ctx, box)).To(Succeed())
			Eventually(readiness(ctx, box)).WithTimeout(time.Minute).Should(Equal("False Progressing"))
		}
		later("later")
		end()
		Eventually(ended).WithTimeout(time.Minute).Should(Receive(BeNil()))
		a.main(ctx)
		later("after-a-restart")
	})
})

// main runs the process of the operator until it ends, or is ended.
func (o *operator) main(ctx context.Context) (ended chan error, end func()) {
	GinkgoHelper()
	cfg, err := env.User(o.user)
	Expect(err).NotTo(HaveOccurred())
	flags := defaults()
	flags.leftOut.Every, flags.leaderNamespace, flags.namespaces = 50*time.Millisecond, o.own, o.namespaces
	mgr := newManager(cfg, &flags)
	Expect(addControllersAndProbes(mgr, &flags)).To(Succeed())
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	ended = make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- startManager(running, mgr)
	}()
	DeferCleanup(func() {
		end()
		Eventually(ended).WithTimeout(time.Minute).Should(BeClosed())
	})
	return ended, end
}

// leftOut reports whether the metric says of a namespace that it is not served.
func leftOut(namespace string) bool {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "modelbox_namespaces_skipped" && metric.GetLabel()[0].GetValue() == namespace {
				return metric.GetGauge().GetValue() == 1
			}
		}
	}
	return false
}
