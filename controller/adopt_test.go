// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/adopt"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

const runningDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web, team: a}, annotations: {note: kept}}
spec:
  replicas: 2
  revisionHistoryLimit: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, version: "1"}, annotations: {kubectl.kubernetes.io/default-container: server}}
    spec:
      serviceAccountName: web
      volumes: [{name: data, emptyDir: {}}]
      initContainers: [{name: init, image: "busybox:1"}]
      containers:
      - {name: proxy, image: "envoy:1", ports: [{containerPort: 53, protocol: UDP}, {containerPort: 53, protocol: TCP}]}
      - name: server
        image: nginx:1.29
        ports: [{name: http, containerPort: 8080}]
        env: [{name: B, value: b}, {name: A, value: $(B)}]
        livenessProbe: {httpGet: {port: http}}
        volumeMounts: [{name: data, mountPath: /data}]
`

const runningService = `
apiVersion: v1
kind: Service
metadata: {name: web, labels: {monitored: "yes"}}
spec:
  clusterIP: None
  selector: {app: web}
  ports: [{name: web, port: 80, targetPort: http}, {name: dns, port: 53, protocol: UDP}]
`

var appKind = kinds.Of(appv1.SchemeGroupVersion.WithKind("App").GroupKind())

// withDeployment creates a Deployment and a Service that run, by an apply of kubectl on the client's or on the
// server's side, and restarts the Deployment.
func withDeployment(ctx context.Context, flags ...string) (metav1.ObjectMeta, *appsv1.Deployment, *corev1.Service) {
	GinkgoHelper()
	named := metav1.ObjectMeta{Namespace: newNamespace(), Name: "web"}
	for _, manifest := range []string{runningDeployment, runningService} {
		_, err := env.Kubectl(manifest, append([]string{"apply", "-n", named.Namespace, "-f", "-"}, flags...)...)
		Expect(err).NotTo(HaveOccurred())
	}
	d, s := &appsv1.Deployment{ObjectMeta: named}, &corev1.Service{ObjectMeta: named}
	const restart = `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-01T00:00:00Z"}}}}}`
	Expect(env.Client.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(restart)), client.FieldOwner("kubectl-rollout"))).To(Succeed())
	rollOut(ctx, named)
	return named, get(ctx, d), get(ctx, s)
}

// adopted makes all steps of the command.
func adopted(ctx context.Context, kind *kinds.Kind, named metav1.ObjectMeta, service ...string) *adopt.Adoption {
	GinkgoHelper()
	a := &adopt.Adoption{Client: env.Client, FieldManager: "modelbox-cli"}
	Expect(a.Prepare(ctx, kind, client.ObjectKey{Namespace: named.Namespace, Name: named.Name}, cmp.Or(append(service, named.Name)...))).To(Succeed())
	Expect(a.Run(ctx, false, GinkgoT().Logf)).To(Succeed())
	return a
}

// unchanged expects that the pods and the address are those of before.
func unchanged(ctx context.Context, before *appsv1.Deployment, service *corev1.Service) {
	GinkgoHelper()
	d, s := get(ctx, before.DeepCopy()), get(ctx, service.DeepCopy())
	Expect(asJSON(d.Spec.Template)).To(Equal(asJSON(before.Spec.Template)))
	Expect(asJSON(d.Spec.Selector)).To(Equal(asJSON(before.Spec.Selector)))
	Expect([]any{d.UID, s.UID}).To(Equal([]any{before.UID, service.UID}))
	Expect(asJSON(s.Spec)).To(Equal(asJSON(service.Spec)))
	Expect(d.Labels).To(Equal(before.Labels))
	Expect(s.Labels).To(Equal(service.Labels))
}

// orphan deletes an object as kubectl delete --cascade=orphan does, with the part of the garbage
// collector, which does not run here.
func orphan(ctx context.Context, owner client.Object, children ...client.Object) {
	GinkgoHelper()
	Expect(env.Client.Delete(ctx, owner, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	for _, child := range children {
		change(ctx, child, func(o client.Object) { o.SetOwnerReferences(nil) })
	}
	change(ctx, owner, func(o client.Object) { o.SetFinalizers(nil) })
	Eventually(func() error { return env.Client.Get(ctx, client.ObjectKeyFromObject(owner), owner) }).ShouldNot(Succeed())
}

// rolledOutAndReady is readiness, of a Deployment which is rolled out whenever it is written.
func rolledOutAndReady(ctx context.Context, owner status.Object, named metav1.ObjectMeta) func() string {
	return func() string {
		rollOut(ctx, named)
		return readiness(ctx, owner)()
	}
}

func workloadStatus(owner status.Object) *modelv1.WorkloadStatus {
	if of, ok := owner.GetStatus().(*appv1.AppStatus); ok {
		return &of.WorkloadStatus
	}
	return &owner.GetStatus().(*modelv1.ModelBoxStatus).WorkloadStatus
}

var _ = Describe("an adopted Deployment", func() {
	for _, tc := range []struct {
		kind  *kinds.Kind
		owner func(metav1.ObjectMeta) status.Object
		flags []string
	}{
		{appKind, func(m metav1.ObjectMeta) status.Object { return &appv1.App{ObjectMeta: m} }, nil},
		{appKind, func(m metav1.ObjectMeta) status.Object { return &appv1.App{ObjectMeta: m} }, []string{"--server-side"}},
		{kinds.ModelBox(), func(m metav1.ObjectMeta) status.Object { return &modelv1.ModelBox{ObjectMeta: m} }, nil},
	} {
		It("keeps its pods as "+tc.kind.GVK.Kind, func(ctx SpecContext) {
			named, d, s := withDeployment(ctx, tc.flags...)
			owner := tc.owner(named)
			adopted(ctx, tc.kind, named)
			Eventually(func() []modelv1.ChildStatus {
				Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(owner), owner)).To(Succeed())
				return workloadStatus(owner).Children
			}).Should(HaveLen(2))
			unchanged(ctx, d, s)
			Eventually(rolledOutAndReady(ctx, owner, named)).Should(Equal("True Ready"))
			Expect(workloadStatus(owner).Selector).To(Equal("app=web"))
			Expect(workloadStatus(owner).Address).To(Equal("web." + named.Namespace + ".svc:80"))

			By("leaving, and being adopted again")
			orphan(ctx, owner, d.DeepCopy(), s.DeepCopy())
			unchanged(ctx, d, s)
			owner = tc.owner(named)
			adopted(ctx, tc.kind, named)
			Eventually(rolledOutAndReady(ctx, owner, named)).Should(Equal("True Ready"))
			unchanged(ctx, d, s)

			By("losing what leaves the object, and nothing else")
			const less = `{"spec":{"envs":[{"name":"A","value":"x"}],"livenessProbe":null,"ports":[{"name":"web","port":80,"targetPort":"http"}],
				"podTemplate":{"metadata":{"annotations":null},"spec":{"initContainers":null,"containers":[
				{"name":"server","ports":[{"name":"http","containerPort":8080}]}],"volumes":null}}}}`
			Expect(env.Client.Patch(ctx, owner, client.RawPatch(types.MergePatchType, []byte(less)))).To(Succeed())
			var want corev1.PodTemplateSpec
			Expect(yaml.Unmarshal([]byte(`
metadata: {labels: {app: web, version: "1"}, annotations: {kubectl.kubernetes.io/restartedAt: "2026-01-01T00:00:00Z"}}
spec: {serviceAccountName: web, containers: [{name: server, image: "nginx:1.29", env: [{name: A, value: x}], ports: [{name: http, containerPort: 8080}]}]}
`), &want)).To(Succeed())
			Eventually(func() string {
				live := get(ctx, d.DeepCopy())
				desired := live.DeepCopy()
				desired.Spec.Template = want
				diff, err := adopt.Differences([]client.Object{desired}, []client.Object{live})
				Expect(err).NotTo(HaveOccurred())
				return diff
			}).Should(BeEmpty())
			Eventually(func() int { return len(get(ctx, s.DeepCopy()).Spec.Ports) }).Should(Equal(1))
			live := get(ctx, d.DeepCopy())
			Expect(live.Spec.Template.Annotations).To(Equal(want.Annotations))
			Expect(live.Annotations).To(HaveKeyWithValue("note", "kept"))
			Expect(*live.Spec.RevisionHistoryLimit).To(BeEquivalentTo(4))
			Expect(get(ctx, s.DeepCopy()).Spec.ClusterIP).To(Equal(corev1.ClusterIPNone))
		})
	}

	It("has its autoscaler and its budget after that as well", func(ctx SpecContext) {
		named, d, s := withDeployment(ctx)
		_, err := env.Kubectl(`
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, labels: {team: a}}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 2, maxReplicas: 4}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {selector: {matchLabels: {app: web}}, minAvailable: 1}
`, "apply", "--server-side", "-n", named.Namespace, "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		scaler, budget := get(ctx, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named}), get(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: named})
		Expect(adopted(ctx, appKind, named).Conflicts).To(BeEmpty())
		app := &appv1.App{ObjectMeta: named}
		Eventually(func() []modelv1.ChildStatus { return get(ctx, app).Status.Children }).Should(HaveLen(4))
		Eventually(rolledOutAndReady(ctx, app, named)).Should(Equal("True Ready"))
		Expect(message(ctx, app)()).NotTo(ContainSubstring("scales it as well"))
		unchanged(ctx, d, s)
		want := scaler.DeepCopy().Spec
		want.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "app.huolala.cn/v1", Kind: "App", Name: "web"}
		Expect(asJSON(get(ctx, scaler).Spec)).To(Equal(asJSON(want)))
		Expect(scaler.Labels).To(HaveKeyWithValue("team", "a"))
		Expect(get(ctx, budget).Spec.MaxUnavailable.IntVal).To(BeEquivalentTo(1))

		By("losing what leaves the object")
		const more = `{"spec":{"disruption":{"minAvailable":null,"maxUnavailable":2},"autoscaling":{"metrics":[{"type":"Resource","resource":{"name":"memory","target":{"type":"Utilization","averageUtilization":50}}}]}}}`
		Expect(env.Client.Patch(ctx, app, client.RawPatch(types.MergePatchType, []byte(more)))).To(Succeed())
		Eventually(func() int32 { return get(ctx, budget).Spec.MaxUnavailable.IntVal }).Should(BeEquivalentTo(2))
		Eventually(func() string { return string(get(ctx, scaler).Spec.Metrics[0].Resource.Name) }).Should(Equal("memory"))
		Expect(env.Client.Patch(ctx, app, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"disruption":null,"autoscaling":null}}`)))).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(env.Client.Get(ctx, client.ObjectKeyFromObject(scaler), scaler)) && apierrors.IsNotFound(env.Client.Get(ctx, client.ObjectKeyFromObject(budget), budget))
		}).Should(BeTrue())
		unchanged(ctx, d, s)
	})

	It("has a Service of another name, which no other object can have", func(ctx SpecContext) {
		named, d, _ := withDeployment(ctx)
		_, err := env.Kubectl(strings.Replace(runningService, "name: web, labels", "name: front, labels", 1), "apply", "-n", named.Namespace, "-f", "-")
		Expect(err).NotTo(HaveOccurred())
		front := get(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: "front"}})
		other := &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: "other"}, Spec: appv1.AppSpec{
			Image: "a:1", Ports: []modelv1.Port{{Port: 80}}, Children: modelv1.Children{Service: &modelv1.ServiceOptions{Name: "front"}},
		}}
		Expect(env.Client.Create(ctx, other)).To(Succeed())
		Eventually(readiness(ctx, other)).Should(Equal("False NameConflict"))
		adopted(ctx, appKind, named, "front")
		app := &appv1.App{ObjectMeta: named}
		Eventually(rolledOutAndReady(ctx, app, named)).Should(Equal("True Ready"))
		Expect(app.Status.Address).To(Equal("front." + named.Namespace + ".svc:80"))
		unchanged(ctx, d, front)

		By("keeping it")
		Expect(env.Client.Patch(ctx, front.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"ports":[{"name":"web","port":81}]}}`)))).To(Succeed())
		Eventually(func() int32 { return get(ctx, front.DeepCopy()).Spec.Ports[0].Port }).Should(BeEquivalentTo(80))
		Eventually(message(ctx, other)).Should(ContainSubstring(`Service "front" already exists and is controlled by App/web`))
		Expect(env.Client.Delete(ctx, other)).To(Succeed()) // It could be the first to create it.
		Expect(env.Client.Delete(ctx, front.DeepCopy())).To(Succeed())
		Eventually(func() bool {
			again := &corev1.Service{}
			err := env.Client.Get(ctx, client.ObjectKeyFromObject(front), again)
			return err == nil && again.UID != front.UID && metav1.IsControlledBy(again, app)
		}).Should(BeTrue())

		By("leaving it to another one")
		other.ObjectMeta = metav1.ObjectMeta{Namespace: named.Namespace, Name: "other"}
		Expect(env.Client.Create(ctx, other)).To(Succeed())
		Eventually(readiness(ctx, other)).Should(Equal("False NameConflict"))
		Expect(env.Client.Patch(ctx, app, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"ports":null}}`)))).To(Succeed())
		Eventually(func() bool {
			gone := env.Client.Get(ctx, client.ObjectKeyFromObject(front), front)
			return gone == nil && metav1.IsControlledBy(front, other)
		}).Should(BeTrue())
		Expect(env.Client.Patch(ctx, other, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"service":null}}`)))).To(MatchError(ContainSubstring("spec.service.name: ")))
	})

	It("is not written if its selector is not that of the object", func(ctx SpecContext) {
		named, d, s := withDeployment(ctx)
		app := &appv1.App{ObjectMeta: named, Spec: appv1.AppSpec{Image: "a:1", Selector: map[string]modelv1.LabelValue{"app": "other"}}}
		app.Spec.PodTemplate = &runtime.RawExtension{Raw: []byte(`{"metadata":{"labels":{"app":"other"}}}`)}
		Expect(env.Client.Create(ctx, app)).To(Succeed())
		Eventually(readiness(ctx, app)).Should(Equal("False NameConflict"))
		change(ctx, d.DeepCopy(), func(o *appsv1.Deployment) {
			o.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(app, appv1.SchemeGroupVersion.WithKind("App"))}
		})
		Eventually(readiness(ctx, app)).Should(Equal("False InvalidSpec"))
		Expect(message(ctx, app)()).To(ContainSubstring(`spec.selector is app=other, but Deployment "web" has the selector app=web`))
		unchanged(ctx, d, s)
	})
})
