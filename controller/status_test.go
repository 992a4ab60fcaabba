// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

var _ = Describe("the status of an object whose children are not written", func() {
	ctx := context.Background()
	var named metav1.ObjectMeta
	var box *modelv1.ModelBox
	BeforeEach(func() {
		named = metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"}
		box = &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{
			Image: "nginx:1", Replicas: new(int32(2)), Ports: []modelv1.Port{{Port: 80}},
		}}
	})
	counts := func() []int32 {
		st := get(ctx, box).Status
		return []int32{st.Replicas, st.ReadyReplicas, st.UpdatedReplicas, st.AvailableReplicas}
	}

	It("counts no pods of a foreign Deployment, and gives no address of a foreign Service", func() {
		other := foreignDeployment(named).(*appsv1.Deployment)
		other.Spec.Replicas = new(int32(7))
		Expect(env.Client.Create(ctx, other)).To(Succeed())
		Expect(env.Client.Create(ctx, foreignService(named))).To(Succeed())
		rollOut(ctx, named)
		Eventually(func() int32 {
			seen := &appsv1.Deployment{ObjectMeta: named}
			_ = running.GetCache().Get(ctx, client.ObjectKeyFromObject(seen), seen)
			return seen.Status.Replicas
		}).Should(BeEquivalentTo(7))
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Eventually(readiness(ctx, box)).Should(Equal("False NameConflict"))
		Expect(counts()).To(HaveEach(BeZero()))
		Expect(box.Status.Address).To(BeEmpty())
	})

	It("counts the pods of the own Deployment while a foreign Service is in the way", func() {
		Expect(env.Client.Create(ctx, foreignService(named))).To(Succeed())
		without := box.DeepCopy()
		without.Spec.Ports = nil
		Expect(env.Client.Create(ctx, without)).To(Succeed())
		rollOut(ctx, named)
		Eventually(readiness(ctx, box)).Should(Equal("True Ready"))
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Ports = []modelv1.Port{{Port: 80}} })
		Eventually(readiness(ctx, box)).Should(Equal("False NameConflict"))
		Expect(counts()).To(HaveEach(BeEquivalentTo(2)))
		Expect(box.Status.Address).To(BeEmpty())
	})

	It("counts what runs while the spec cannot be built", func() {
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		rollOut(ctx, named)
		Eventually(readiness(ctx, box)).Should(Equal("True Ready"))
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.PodTemplate = raw(`{"spec":{"nosuchfield":1}}`) })
		Eventually(readiness(ctx, box)).Should(Equal("False InvalidSpec"))
		Expect(counts()).To(HaveEach(BeEquivalentTo(2)))
		deployment := get(ctx, &appsv1.Deployment{ObjectMeta: named})
		deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation}
		Expect(env.Client.Status().Update(ctx, deployment)).To(Succeed())
		Eventually(counts).Should(HaveEach(BeZero()))
	})

	It("counts no nodes of a foreign DaemonSet", func() {
		Expect(env.Client.Create(ctx, foreignDaemonSet(named))).To(Succeed())
		rollOutDaemon(ctx, named)
		daemon := &mydomainv1beta1.Genericdaemon{ObjectMeta: named, Spec: mydomainv1beta1.GenericdaemonSpec{Image: "syslog:1"}}
		Expect(env.Client.Create(ctx, daemon)).To(Succeed())
		Eventually(readiness(ctx, daemon)).Should(Equal("False NameConflict"))
		Expect(daemon.Status.Installed + daemon.Status.Desired + daemon.Status.Available).To(BeZero())
	})
})

func raw(json string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(json)} }

var _ = Describe("a spec that admission would refuse today", func() {
	ctx := context.Background()

	It("is built and scaled where the API server accepts the children, and Ready quotes the rule", func() {
		box := createBox(ctx, func(s *modelv1.ModelBoxSpec) {
			s.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("undeclared")}}}
		})
		rollOut(ctx, metav1.ObjectMeta{Namespace: box.Namespace, Name: box.Name})
		Eventually(readiness(ctx, box)).Should(Equal("True Ready"))
		Expect(message(ctx, box)()).To(HavePrefix("1 of 1 pods are available; spec is invalid under the current rules: spec.readinessProbe.tcpSocket.port"))
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Replicas = new(int32(3)) })
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: box.Namespace, Name: box.Name}}
		Eventually(func() int32 { return *get(ctx, deployment).Spec.Replicas }).Should(BeEquivalentTo(3))
	})

	DescribeTable("is built, and not ready while a field that only the operator reads is not in effect", func(how func(*modelv1.ModelBoxSpec), at string) {
		box := createBox(ctx, how)
		rollOut(ctx, metav1.ObjectMeta{Namespace: box.Namespace, Name: box.Name})
		Eventually(readiness(ctx, box)).Should(Equal("False InvalidSpec"))
		Expect(message(ctx, box)()).To(HavePrefix("1 of 1 pods are available; spec is invalid under the current rules: " + at))
	},
		Entry("schedules", func(s *modelv1.ModelBoxSpec) {
			s.Schedules = []modelv1.Schedule{{Name: "day", Schedule: "0 8 30 2 *", Replicas: 2}}
		}, "spec.schedules[0].schedule"),
		Entry("windows", func(s *modelv1.ModelBoxSpec) {
			s.RestartOnChange = modelv1.RestartOnChangeReferenced
			s.Windows.Windows = []modelv1.Window{{Schedule: "0 8 30 2 *", Duration: metav1.Duration{Duration: time.Hour}}}
		}, "spec.windows[0].schedule"),
		Entry("a route without a port", func(s *modelv1.ModelBoxSpec) {
			s.Route = &modelv1.Route{Hosts: []modelv1.Host{"a.example.com"}, Gateway: modelv1.GatewayReference{Name: "public"}}
		}, "spec.route"),
	)

	DescribeTable("has a Ready condition however much is wrong, with the API server's words",
		func(how func(*modelv1.ModelBoxSpec), want string) {
			box := createBox(ctx, how)
			Eventually(readiness(ctx, box)).Should(Equal("False ChildRefused"))
			Expect(message(ctx, box)()).To(ContainSubstring(want))
		},
		Entry("400 names of variables", func(s *modelv1.ModelBoxSpec) {
			for i := range 400 {
				s.Envs = append(s.Envs, corev1.EnvVar{Name: fmt.Sprintf("a=%d%s", i, strings.Repeat("x", 200)), Value: "x"})
			}
		}, "spec.template.spec.containers[0].env[0].name"),
		Entry("700 volumes", func(s *modelv1.ModelBoxSpec) {
			volumes := make([]string, 700)
			for i := range volumes {
				volumes[i] = fmt.Sprintf(`{"name":"NOT_A_NAME_%d","emptyDir":{}}`, i)
			}
			s.PodTemplate = raw(`{"spec":{"volumes":[` + strings.Join(volumes, ",") + `]}}`)
		}, "spec.template.spec.volumes[0].name"),
	)

	It("says that an apply is refused for a list that has a key twice, and recovers", func() {
		box := createBox(ctx, func(s *modelv1.ModelBoxSpec) {
			s.PodTemplate = raw(`{"spec":{"hostAliases":[{"ip":"10.0.0.1","hostnames":["a"]},{"ip":"10.0.0.1","hostnames":["b"]}]}}`)
		})
		rollOut(ctx, metav1.ObjectMeta{Namespace: box.Namespace, Name: box.Name})
		Eventually(readiness(ctx, box)).Should(Or(Equal("True Ready"), Equal("False ChildRefused")))
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.Image = "nginx:2" })
		Eventually(readiness(ctx, box)).Should(Equal("False ChildRefused"))
		Expect(message(ctx, box)()).To(ContainSubstring("spec.podTemplate.spec.hostAliases[1].ip: Duplicate value"))
		change(ctx, box, func(b *modelv1.ModelBox) { b.Spec.PodTemplate = nil })
		Eventually(readiness(ctx, box)).Should(Equal("False Progressing"))
		deployment := get(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: box.Namespace, Name: box.Name}})
		Expect(deployment.Spec.Template.Spec.Containers[0].Image).To(Equal("nginx:2"))
		Expect(deployment.Spec.Template.Spec.HostAliases).To(BeEmpty())
	})
})

var _ = Describe("the condition Available", func() {
	ctx := context.Background()
	// waits reports whether "kubectl wait" sees the condition before its timeout.
	waits := func(obj client.Object, kind string, timeout string) error {
		_, err := env.Kubectl("", "wait", "--namespace", obj.GetNamespace(), kind+"/"+obj.GetName(), "--for=condition=Available", "--timeout="+timeout)
		return err
	}
	for kind, resource := range map[string]string{"ModelBox": "modelboxes.model.github.com", "App": "apps.app.huolala.cn", "Genericdaemon": "genericdaemons.mydomain.com"} {
		It("is one that kubectl wait waits for: "+kind, func() {
			named, g := metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"}, guarantees[kind]
			obj := g.object(named)
			available := func() *metav1.Condition {
				return meta.FindStatusCondition(get(ctx, obj).GetConditions(), status.ConditionAvailable)
			}
			Expect(env.Client.Create(ctx, obj)).To(Succeed())
			Eventually(available).Should(HaveField("Status", metav1.ConditionUnknown))
			Expect(waits(obj, resource, "0")).NotTo(Succeed())
			g.after(ctx, named)
			Expect(waits(obj, resource, "20s")).To(Succeed())
			Eventually(readiness(ctx, obj)).Should(Equal("True Ready"))

			By("a new spec: what was true before does not count")
			change(ctx, obj, g.edit)
			Eventually(readiness(ctx, obj)).Should(Equal("False Progressing"))
			Expect(available()).To(HaveField("ObservedGeneration", BeNumerically("<", obj.GetGeneration())))
			Expect(waits(obj, resource, "0")).NotTo(Succeed())
			g.after(ctx, named)
			Expect(waits(obj, resource, "20s")).To(Succeed())

			By("a pod that is not available any more")
			disturb[kind](ctx, named)
			Eventually(available).Should(HaveField("Status", metav1.ConditionFalse))
			Expect(waits(obj, resource, "0")).NotTo(Succeed())
		})

		It("is False for an object that has no child: "+kind, func() {
			named, g := metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"}, guarantees[kind]
			Expect(env.Client.Create(ctx, g.children[0](named))).To(Succeed())
			obj := g.object(named)
			Expect(env.Client.Create(ctx, obj)).To(Succeed())
			Eventually(readiness(ctx, obj)).Should(Equal("False NameConflict"))
			available := meta.FindStatusCondition(obj.GetConditions(), status.ConditionAvailable)
			Expect(available).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "NameConflict"), HaveField("Message", HavePrefix("there is no D"))))
		})
	}

	It("stays False for a daemon that no node is for", func() {
		named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"}
		daemon := &mydomainv1beta1.Genericdaemon{ObjectMeta: named, Spec: mydomainv1beta1.GenericdaemonSpec{Image: "syslog:1", Label: "logs"}}
		Expect(env.Client.Create(ctx, daemon)).To(Succeed())
		writeDaemonStatus(ctx, named, func(s *appsv1.DaemonSet) { s.Status = appsv1.DaemonSetStatus{ObservedGeneration: s.Generation} })
		Eventually(readiness(ctx, daemon)).Should(Equal("False NoMatchingNodes"))
		Expect(meta.FindStatusCondition(daemon.Status.Conditions, status.ConditionAvailable)).To(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "NoMatchingNodes")))
	})
})

var _ = Describe("the status that another client writes", func() {
	for kind, g := range guarantees {
		var named metav1.ObjectMeta
		var obj status.Object
		settle := func(ctx context.Context) {
			GinkgoHelper()
			Eventually(readiness(ctx, obj)).ShouldNot(Equal("not seen"))
			g.after(ctx, named)
			Eventually(readiness(ctx, obj)).Should(HavePrefix("True "))
		}
		create := func(ctx context.Context) {
			GinkgoHelper()
			named = metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
			if g.before != nil {
				g.before(ctx, named)
			}
			obj = g.object(named)
			Expect(env.Client.Create(ctx, obj)).To(Succeed())
			settle(ctx)
		}
		// stored returns the stored status without its times.
		stored := func(ctx context.Context) string {
			GinkgoHelper()
			document, err := json.Marshal(get(ctx, obj).GetStatus())
			Expect(err).NotTo(HaveOccurred())
			return regexp.MustCompile(`"\w+Time":"[^"]*"`).ReplaceAllString(string(document), "")
		}

		It("is corrected by one request: "+kind, func(ctx SpecContext) {
			create(ctx)
			change(ctx, obj, g.edit)
			settle(ctx)
			want := stored(ctx)
			for _, wrong := range []string{
				// The late write of a former leader.
				`{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"False","reason":"Progressing","message":"0 of 2 pods are available","observedGeneration":1,"lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`,
				`{"status":{"observedGeneration":9}}`,
				`{"status":{"conditions":null}}`,
			} {
				written := atRest(named.Namespace)
				Expect(env.Client.Status().Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(wrong)))).To(Succeed())
				Eventually(stored).WithArguments(ctx).Should(Equal(want), wrong)
				once := HaveExactElements(MatchRegexp(": 1 x patch [a-z]+/status 200$"))
				Eventually(written).Should(once)
				Consistently(written, 300*time.Millisecond).Should(once, "the own write is reconciled, by no request")
			}
		})

		It("stays, if the write of a former leader comes later, for which nothing is read: "+kind, func(ctx SpecContext) {
			create(ctx)
			var want string
			refused := 0
			former := interceptor.NewClient(env.Client, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
					err := c.Get(ctx, key, into, opts...)
					if cached, ok := into.(status.Object); ok {
						reflect.ValueOf(cached.GetStatus()).Elem().FieldByName("Conditions").SetZero() // So that it has something to write.
					}
					return err
				},
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, into client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
					change(ctx, obj, g.edit)
					settle(ctx)
					want = stored(ctx)
					err := c.SubResource(sub).Patch(ctx, into, patch, opts...)
					Expect(err).To(Satisfy(apierrors.IsConflict), sub)
					refused++
					return err
				},
			})
			live := interceptor.NewClient(env.Client, interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
					return fmt.Errorf("a read of %s", key)
				},
			})
			result, err := reconcilerOf(kind, writerWith(former, live), clock.RealClock{}).Reconcile(ctx, requestFor(obj))
			Expect(err).NotTo(HaveOccurred(), "the watch event is the retry")
			Expect(result.RequeueAfter).To(BeNumerically(">", 0), "if it does not come")
			Expect(refused).To(Equal(1))
			Expect(stored(ctx)).To(Equal(want))
		})
	}
})

var _ = Describe("a Deployment that kubectl rollout pause has paused", func() {
	for _, kind := range []string{"ModelBox", "App"} { // A DaemonSet cannot be paused.
		It("is reported, gets changes, and is not resumed: "+kind, func(ctx SpecContext) {
			named, g := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}, guarantees[kind]
			obj, deployment := g.object(named), &appsv1.Deployment{ObjectMeta: named}
			rollout := func(verb string) {
				GinkgoHelper()
				_, err := env.Kubectl("", "rollout", verb, "deployment/web", "-n", named.Namespace)
				Expect(err).NotTo(HaveOccurred())
			}
			Expect(env.Client.Create(ctx, obj)).To(Succeed())
			rollOut(ctx, named)
			Eventually(readiness(ctx, obj)).Should(Equal("True Ready"))
			rollout("pause")
			Eventually(readiness(ctx, obj)).Should(Equal("False DeploymentPaused"))
			Expect(message(ctx, obj)()).To(
				ContainSubstring("kubectl rollout resume deployment/web -n " + named.Namespace))
			Expect(meta.FindStatusCondition(obj.GetConditions(), status.ConditionStalled)).To(BeNil())
			image := get(ctx, deployment).Spec.Template.Spec.Containers[0].Image
			change(ctx, obj, g.edit)
			Eventually(func() string { return get(ctx, deployment).Spec.Template.Spec.Containers[0].Image }).Should(Equal(image + ".1"))
			Expect(deployment.Spec.Paused).To(BeTrue())
			rollout("resume")
			Eventually(readiness(ctx, obj)).Should(Equal("False Progressing"))
			rollOut(ctx, named)
			Eventually(readiness(ctx, obj)).Should(Equal("True Ready"))
		})
	}
})
