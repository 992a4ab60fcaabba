// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/modelbox-operator/modelbox-operator/controller/app"
	"github.com/modelbox-operator/modelbox-operator/controller/modelbox"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/test/faults"
)

// thoroughly is true if "make test-long" runs the tests.
var thoroughly = os.Getenv("MODELBOX_LONG") != ""

// newReplica starts one process of the controller, elected by a lease, with one kind.
func newReplica(cfg *rest.Config, namespace string, add func(manager.Manager, workload.Shared) error) *process {
	GinkgoHelper()
	o := defaults()
	o.leaderNamespace = namespace
	mgr := newManager(cfg, &o)
	Expect(add(mgr, workload.Shared{Clock: clock.RealClock{}})).To(Succeed())
	r := launch(mgr)
	DeferCleanup(r.cancel)
	return r
}

var _ = Describe("an API server that answers late", Ordered, long, func() {
	BeforeAll(alone)
	// late is one sort of delay. The cases run at the same time and have one kind each, so that
	// no case reconciles the objects of another.
	type late struct {
		delay  func() time.Duration
		add    func(manager.Manager, workload.Shared) error
		object func(metav1.ObjectMeta) client.Object
	}
	cases := map[string]late{
		"each by 4 s": {faults.Constant(4 * time.Second), modelbox.SetupWithManager,
			func(named metav1.ObjectMeta) client.Object { return guarantees["ModelBox"].object(named) }},
		"by 0 to 3 s": {faults.Varying(uint64(GinkgoRandomSeed()), 3*time.Second), app.SetupWithManager,
			func(named metav1.ObjectMeta) client.Object { return guarantees["App"].object(named) }},
	}
	const lasting = 25 * time.Second

	It("keeps its leader, and its objects are reconciled", func(ctx SpecContext) {
		if !thoroughly {
			Skip("MODELBOX_LONG=1 runs it: it lasts longer than a lease")
		}
		type running struct {
			proxy         *faults.Proxy
			leader, other *process
			lease         *coordinationv1.Lease
			holder        string
		}
		all := map[string]*running{}
		for name, c := range cases {
			// As an administrator: the policy allows a controller only the lease in its own namespace.
			proxy, err := faults.NewProxy(env.Config)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(proxy.Close)
			namespace := newNamespace()
			r := &running{proxy: proxy, leader: newReplica(proxy.Config(), namespace, c.add)}
			Eventually(r.leader.Elected()).Should(BeClosed())
			r.other = newReplica(proxy.Config(), namespace, c.add)
			r.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: electionID}}
			r.holder = *get(ctx, r.lease).Spec.HolderIdentity
			all[name] = r
		}
		made := 0
		create := func() {
			GinkgoHelper()
			made++
			for name, c := range cases {
				named := metav1.ObjectMeta{Namespace: all[name].lease.Namespace, Name: fmt.Sprintf("obj-%d", made)}
				Expect(env.Client.Create(ctx, c.object(named))).To(Succeed())
			}
		}
		create()
		for name, c := range cases {
			all[name].proxy.Delay(c.delay)
		}
		begun, half := time.Now(), false
		Consistently(func(g Gomega) {
			if !half && time.Since(begun) > lasting/3 {
				half = true
				create()
			}
			for name, r := range all {
				g.Expect(r.leader.done).NotTo(Receive(), "%s: the leader exits", name)
				g.Expect(r.other.done).NotTo(Receive(), "%s: the other replica exits", name)
				g.Expect(r.other.Elected()).NotTo(BeClosed(), "%s: a second leader", name)
				g.Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(r.lease), r.lease)).To(Succeed())
				g.Expect(*r.lease.Spec.HolderIdentity).To(Equal(r.holder), "%s: another holder", name)
			}
		}, lasting, 100*time.Millisecond).Should(Succeed())
		for name, r := range all {
			for i := 1; i <= made; i++ {
				named := metav1.ObjectMeta{Namespace: r.lease.Namespace, Name: fmt.Sprintf("obj-%d", i)}
				for _, child := range []client.Object{&appsv1.Deployment{ObjectMeta: named}, &corev1.Service{ObjectMeta: named}} {
					Eventually(func() error { return env.Client.Get(ctx, client.ObjectKeyFromObject(child), child) }).
						WithTimeout(2*time.Minute).Should(Succeed(), "%s: a child that is not there", name)
				}
			}
		}
		By("the API server responds without delay again, and the leader ends")
		for name, r := range all {
			r.proxy.Delay(faults.Constant(0))
			Expect(r.leader.end()).To(Succeed(), name)
			Eventually(r.other.Elected()).Should(BeClosed(), "%s: the other replica waits for nothing", name)
			Expect(r.other.end()).To(Succeed(), name)
		}
	}, SpecTimeout(5*time.Minute))
})
