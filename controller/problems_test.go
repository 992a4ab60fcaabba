// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// hash is the hash of the pod template of all pods here.
const hash = "7c5ddbdf54"

// deploymentStatus writes the status of a Deployment whose pods, some of them available, exist.
func deploymentStatus(ctx context.Context, named metav1.ObjectMeta, available int32) {
	GinkgoHelper()
	writeDeploymentStatus(ctx, named, false, func(d *appsv1.Deployment) {
		d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.Conditions = available, available, nil
	})
}

// createPod creates a pod as a controller does, with the status of its only container. The
// labels are those of the workload's pods.
func createPod(ctx context.Context, name, node string, labels map[string]string, owner metav1.OwnerReference, state corev1.ContainerStatus) *corev1.Pod {
	GinkgoHelper()
	owner.APIVersion, owner.Controller = "apps/v1", new(true)
	if owner.UID == "" {
		owner.UID = "5b0c3f8e-12ab-4c1d-8b7d-0c9a3a5b7f11"
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: labels["namespace"], Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "server", Image: "nginx:1", StartupProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}},
		}}},
	}
	pod.Spec.Containers[0].StartupProbe.TCPSocket.Port.IntVal = 8080
	Expect(env.Client.Create(ctx, pod)).To(Succeed())
	state.Name = "server"
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{state}}
	Expect(env.Client.Status().Update(ctx, pod)).To(Succeed())
	return pod
}

// podOf creates a pod of a ModelBox's or an App's Deployment.
func podOf(ctx context.Context, named metav1.ObjectMeta, name string, state corev1.ContainerStatus) *corev1.Pod {
	GinkgoHelper()
	deployment := get(ctx, &appsv1.Deployment{ObjectMeta: named})
	labels := map[string]string{"namespace": named.Namespace, appsv1.DefaultDeploymentUniqueLabelKey: hash}
	maps.Copy(labels, deployment.Spec.Selector.MatchLabels)
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: named.Namespace, Name: named.Name + "-" + hash, Labels: labels,
		Annotations:     map[string]string{"deployment.kubernetes.io/revision": "1"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
	}}
	set.Spec.Selector, set.Spec.Template = &metav1.LabelSelector{MatchLabels: labels}, deployment.Spec.Template
	set.Spec.Template.Labels = labels
	if err := env.Client.Create(ctx, set); apierrors.IsAlreadyExists(err) {
		get(ctx, set)
	} else {
		Expect(err).NotTo(HaveOccurred())
	}
	return createPod(ctx, name, "node", labels, metav1.OwnerReference{Kind: "ReplicaSet", Name: set.Name, UID: set.UID}, state)
}

func waits(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

var badImage = waits("ImagePullBackOff", `Back-off pulling image "nginx:1": ErrImagePull: nginx:1: not found`)

var _ = Describe("the reason why an object is not ready", func() {
	ctx := context.Background()
	var named metav1.ObjectMeta
	var clk *clocktesting.FakePassiveClock
	var recorder *events.FakeRecorder
	BeforeEach(func() {
		alone() // The clock of these specs decides when pods are listed.
		named = metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"}
		clk, recorder = clocktesting.NewFakePassiveClock(time.Now()), events.NewFakeRecorder(100)
		DeferCleanup(removeAll, named.Namespace)
	})

	// reconciler returns a function that reconciles an object after some time, with a client whose
	// lists have the permissions of a user.
	reconciler := func(kind string, obj status.Object, user string) func(time.Duration) reconcile.Result {
		GinkgoHelper()
		c, err := client.New(asController, client.Options{Scheme: env.Client.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		cfg, err := env.User(user)
		if user == controllerUser {
			cfg = asController
		}
		Expect(err).NotTo(HaveOccurred())
		live, err := client.New(cfg, client.Options{Scheme: env.Client.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		r := reconcilerOf(kind, apply.Writer{Access: apply.Access{Client: cached{c}, Live: live}, Recorder: recorder}, clk)
		return func(after time.Duration) reconcile.Result {
			GinkgoHelper()
			clk.SetTime(clk.Now().Add(after))
			result, err := r.Reconcile(ctx, requestFor(obj))
			Expect(err).NotTo(HaveOccurred())
			get(ctx, obj)
			return result
		}
	}
	// lists returns the lists of pods and the writes of status since the mark.
	lists := func(mark int) (pods, writes int) {
		GinkgoHelper()
		requests, err := env.Requests(controllerUser)
		Expect(err).NotTo(HaveOccurred())
		for _, r := range requests[mark:] {
			switch {
			case r.Resource == "pods":
				Expect(r.Verb).To(Equal("list"))
				Expect(r.Namespace).To(Equal(named.Namespace))
				pods++
			case r.Verb == "patch" && r.Subresource == "status":
				writes++
			}
		}
		return pods, writes
	}
	marked := func() int {
		GinkgoHelper()
		requests, err := env.Requests(controllerUser)
		Expect(err).NotTo(HaveOccurred())
		return len(requests)
	}

	It("is in Ready, Stalled and problems, until it is ready", func() {
		box := &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{Image: "nginx:1", Replicas: new(int32(2))}}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		reconcileAfter := reconciler("ModelBox", box, controllerUser)
		reconcileAfter(0)
		deploymentStatus(ctx, named, 0)
		pods := []*corev1.Pod{podOf(ctx, named, "a", badImage), podOf(ctx, named, "b", badImage)}
		mark := marked()
		result := reconcileAfter(time.Second)
		Expect(result.RequeueAfter).To(BeNumerically("~", 15*time.Second, time.Second))
		Expect(message(ctx, box)()).To(Equal("0 of 2 pods are available"))
		listed, _ := lists(mark)
		Expect(listed).To(BeZero(), "it has not been not ready for long")

		By("more than 15 seconds later")
		reconcileAfter(result.RequeueAfter)
		Expect(readiness(ctx, box)()).To(Equal("False ImagePullBackOff"))
		Expect(message(ctx, box)()).To(Equal(`0 of 2 pods are available; ImagePullBackOff (container "server" of 2 pods): nginx:1: not found`))
		Expect(box.Status.Problems).To(HaveLen(1))
		Expect(box.Status.Problems[0]).To(HaveField("Count", BeEquivalentTo(2)))
		stalled := meta.FindStatusCondition(box.Status.Conditions, status.ConditionStalled)
		Expect(stalled).To(HaveField("Reason", "ImagePullBackOff"))
		Expect(meta.FindStatusCondition(box.Status.Conditions, status.ConditionReconciling)).To(BeNil())
		Expect(recorder.Events).To(Receive(ContainSubstring("Warning ImagePullBackOff")))

		By("the pods are ready")
		for _, pod := range pods {
			Expect(env.Client.Delete(ctx, pod)).To(Succeed())
		}
		deploymentStatus(ctx, named, 2)
		mark = marked()
		Expect(reconcileAfter(time.Minute).RequeueAfter).To(BeZero())
		Expect(readiness(ctx, box)()).To(Equal("True Ready"))
		Expect(box.Status.Problems).To(BeEmpty())
		Expect(meta.FindStatusCondition(box.Status.Conditions, status.ConditionStalled)).To(BeNil())
		reconcileAfter(time.Hour)
		listed, written := lists(mark)
		Expect(listed).To(BeZero(), "at rest")
		Expect(written).To(Equal(1))
	})

	It("is not looked for where the pods are not the reason", func() {
		box := &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{Image: "nginx:1"}}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		reconcileAfter := reconciler("ModelBox", box, controllerUser)
		reconcileAfter(0)
		deploymentStatus(ctx, named, 0)
		podOf(ctx, named, "a", badImage)
		reconcileAfter(time.Minute)
		Expect(box.Status.Problems).To(HaveLen(1))
		for want, edit := range map[string]func(){
			"False Progressing": func() { box.Spec.Paused = true },
			"False InvalidSpec": func() { box.Spec.Image = "BAD image" },
			"False Paused":      func() { box.Spec.Paused, box.Spec.Replicas = true, new(int32(7)) },
		} {
			change(ctx, box, func(b *modelv1.ModelBox) {
				b.Spec = modelv1.ModelBoxSpec{Image: "nginx:1"}
				edit()
			})
			mark := marked()
			Expect(reconcileAfter(time.Hour).RequeueAfter).To(BeZero(), want)
			Expect(readiness(ctx, box)()).To(Equal(want))
			Expect(box.Status.Problems).To(BeEmpty(), want)
			listed, _ := lists(mark)
			Expect(listed).To(BeZero(), want)
		}
	})

	It("does not matter to what its pods have fetched, which is read once for each rollout", func() {
		const sum = "7d865e959b2466918c9863afca942d0fb89d7c9ac0c99bafc3749504ded97730"
		box := &modelv1.ModelBox{ObjectMeta: named, Spec: modelv1.ModelBoxSpec{Image: "nginx:1", Model: &modelv1.Model{URI: "https://a.example/b"}}}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		reconcileAfter := reconciler("ModelBox", box, controllerUser)
		reconcileAfter(0)
		// rolledOut ends a rollout whose only pod has fetched the model, and says a message.
		rolledOut := func(revision, message string) {
			GinkgoHelper()
			deployment := &appsv1.Deployment{ObjectMeta: named}
			change(ctx, deployment, func(d *appsv1.Deployment) {
				metav1.SetMetaDataAnnotation(&d.ObjectMeta, "deployment.kubernetes.io/revision", revision)
			})
			deploymentStatus(ctx, named, 1)
			template := podOf(ctx, named, "a-"+revision, corev1.ContainerStatus{})
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: named.Namespace, Name: "b-" + revision, Labels: template.Labels, OwnerReferences: template.OwnerReferences}}
			pod.Spec = get(ctx, deployment).Spec.Template.Spec
			Expect(env.Client.Create(ctx, pod)).To(Succeed())
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
				Name: "fetch-model", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}},
			}}
			Expect(env.Client.Status().Update(ctx, pod)).To(Succeed())
		}
		// again reconciles some times, and returns how often pods were listed and status was written.
		again := func(times int) (listed, written int) {
			GinkgoHelper()
			mark := marked()
			for range times {
				Expect(reconcileAfter(time.Minute).RequeueAfter).To(BeZero())
			}
			return lists(mark)
		}
		rolledOut("1", `{"models":[{"digest":"sha256:`+sum+`","bytes":7}]}`)
		By("without the permission to list pods, which is asked for again")
		Expect(reconciler("ModelBox", box, "unknown-user")(time.Minute).RequeueAfter).To(Equal(time.Minute))
		Expect(readiness(ctx, box)()).To(Equal("True Ready"))
		Expect(box.Status.Model).To(BeNil())

		By("with it")
		listed, written := again(5)
		Expect([]int{listed, written}).To(Equal([]int{1, 1}))
		Expect(readiness(ctx, box)()).To(Equal("True Ready"))
		Expect(box.Status.Model).To(Equal(&modelv1.ModelStatus{URI: "https://a.example/b", Digest: "sha256:" + sum, Bytes: 7}))

		By("a new process")
		reconcileAfter = reconciler("ModelBox", box, controllerUser)
		listed, written = again(5)
		Expect([]int{listed, written}).To(Equal([]int{0, 0}))

		By("another model, whose message is forged")
		change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Model.URI = "https://a.example/c" })
		reconcileAfter(time.Minute)
		Expect(box.Status.Model).To(BeNil())
		rolledOut("2", `{"models":[{"digest":"sha256:evil","bytes":7}]}`)
		listed, _ = again(5)
		Expect(listed).To(Equal(1))
		Expect(box.Status.Model).To(Equal(&modelv1.ModelStatus{}))
		reconcileAfter = reconciler("ModelBox", box, controllerUser)
		listed, written = again(5)
		Expect([]int{listed, written}).To(Equal([]int{0, 0}))

		By("no model")
		change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Model = nil })
		reconcileAfter(time.Minute)
		rollOut(ctx, named)
		listed, _ = again(5)
		Expect(listed).To(BeZero())
		Expect(readiness(ctx, box)()).To(Equal("True Ready"))
		Expect(box.Status.Model).To(BeNil())
	})

	It("is that of the daemon's pods, and of the nodes that have none", func() {
		named.Name = "syslog"
		label := "logs-" + named.Namespace
		daemon := &mydomainv1beta1.Genericdaemon{ObjectMeta: named, Spec: mydomainv1beta1.GenericdaemonSpec{Label: label, Image: "syslog:1"}}
		Expect(env.Client.Create(ctx, daemon)).To(Succeed())
		reconcileAfter := reconciler("Genericdaemon", daemon, controllerUser)
		reconcileAfter(0)
		set := get(ctx, &appsv1.DaemonSet{ObjectMeta: named})
		set.Status = appsv1.DaemonSetStatus{
			ObservedGeneration: set.Generation, DesiredNumberScheduled: 3, CurrentNumberScheduled: 2, UpdatedNumberScheduled: 3, NumberReady: 1, NumberAvailable: 1,
		}
		Expect(env.Client.Status().Update(ctx, set)).To(Succeed())
		labels := map[string]string{"namespace": named.Namespace, "pod-template-generation": set.Annotations[appsv1.DeprecatedTemplateGeneration]}
		maps.Copy(labels, set.Spec.Selector.MatchLabels)
		owner := metav1.OwnerReference{Kind: "DaemonSet", Name: set.Name, UID: set.UID}
		crashed := corev1.ContainerStatus{RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
		crashed.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error", Message: "no route\n"}
		createPod(ctx, "b", named.Namespace+"-b", labels, owner, crashed)
		pod := createPod(ctx, "a", named.Namespace+"-a", labels, owner, corev1.ContainerStatus{Ready: true, Started: new(true)})
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		Expect(env.Client.Status().Update(ctx, pod)).To(Succeed())
		reconcileAfter(time.Minute)
		Expect(readiness(ctx, daemon)()).To(Equal("False CrashLoopBackOff"))
		Expect(message(ctx, daemon)()).To(Equal(`the daemon is available on 1 of 3 nodes; CrashLoopBackOff (container "server" of 1 pod): ` +
			`exit code 2: no route`))
		Expect(daemon.Status.Problems).To(HaveExactElements(HaveField("Reason", "CrashLoopBackOff"), HaveField("Reason", "PodsMissing")))

		rollOutDaemon(ctx, named)
		reconcileAfter(time.Minute)
		Expect(readiness(ctx, daemon)()).To(Equal("True Ready"))
		Expect(daemon.Status.Problems).To(BeEmpty())
	})
})
