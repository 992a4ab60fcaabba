// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

const modelImage = "oci://registry.example.com/team/model@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// serving creates a ModelBox that serves a model.
func serving(ctx context.Context, uri string) *modelv1.ModelBox {
	GinkgoHelper()
	return createBox(ctx, func(s *modelv1.ModelBoxSpec) { s.Model = &modelv1.Model{URI: uri} })
}

// released changes the flags of the controllers that start from now on, as an upgrade of the
// operator does.
func released(fetcher models.Fetcher) {
	GinkgoHelper()
	before := modelFetcher
	modelFetcher = fetcher
	DeferCleanup(func() { modelFetcher = before })
}

var _ = Describe("a model that a container fetches", Ordered, ContinueOnFailure, func() {
	ctx := context.Background()
	BeforeAll(alone)
	const uri = "https://models.example.com/bert.tar.zst"
	upgrade := models.Fetcher{Image: "modelbox-controller:v2", Mirrors: []string{"https://models.example.com=https://mirror.example.com"}}

	It("is fetched as before after an upgrade of the operator, until the pod template changes", func() {
		box := serving(ctx, uri)
		deployment := &appsv1.Deployment{ObjectMeta: box.ObjectMeta}
		fetch := func() *corev1.Container { return &get(ctx, deployment).Spec.Template.Spec.InitContainers[0] }
		drive().settled(ctx, box)
		Expect(fetch().Image).To(Equal("modelbox-controller:v1"))
		before := deployment.Generation

		By("an upgrade, which writes nothing")
		released(upgrade)
		drive().settled(ctx, box)
		Expect(fetch().Image).To(Equal("modelbox-controller:v1"))
		Expect(deployment.Generation).To(Equal(before))

		By("a scaling, which changes no pod")
		template := get(ctx, deployment).Spec.Template
		change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Replicas = new(int32(3)) })
		drive().settled(ctx, box)
		Expect(get(ctx, deployment).Spec.Template).To(Equal(template))
		Expect(*deployment.Spec.Replicas).To(BeEquivalentTo(3))

		By("an edit of the image by another field manager, which is reverted to the kept one")
		change(ctx, deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.InitContainers[0].Image = "other:1" })
		drive().settled(ctx, box)
		Expect(fetch().Image).To(Equal("modelbox-controller:v1"))

		By("a lost status, which replaces the pods once")
		get(ctx, box).Status = modelv1.ModelBoxStatus{}
		Expect(env.Client.Status().Update(ctx, box)).To(Succeed())
		Expect(fetch().Image).To(Equal("modelbox-controller:v1"))
		before = deployment.Generation
		drive().settled(ctx, box)
		Expect(fetch().Image).To(Equal("modelbox-controller:v2"))
		Expect(fetch().Args).To(ContainElement("--mirror=" + upgrade.Mirrors[0]))
		Expect(deployment.Generation).To(Equal(before + 1))
		drive().settled(ctx, box)
		Expect(get(ctx, deployment).Generation).To(Equal(before + 1))
	})

	// Whatever clients write into the Deployment is reverted, also where it agrees with itself: the image,
	// annotations that say that it was the operator's, and the hash of the desired state.
	It("is fetched with no image that another client chose", func() {
		box := serving(ctx, uri)
		deployment := &appsv1.Deployment{ObjectMeta: box.ObjectMeta}
		fetch := func() *corev1.Container { return &get(ctx, deployment).Spec.Template.Spec.InitContainers[0] }
		drive().settled(ctx, box)
		Expect(get(ctx, box).Status.Fetcher).To(HaveField("Image", "modelbox-controller:v1"))
		hash, installed := box.Status.Fetcher.TemplateHash, modelFetcher
		for name, edit := range map[string]func(d *appsv1.Deployment){
			"the annotation of earlier versions": func(*appsv1.Deployment) {},
			"and managedFields":                  func(d *appsv1.Deployment) { d.ManagedFields = []metav1.ManagedFieldsEntry{{}} },
			"and the image": func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.InitContainers[0].Image = "evil.example.com/steal:1"
				d.Spec.Template.Spec.InitContainers[0].Args = append(d.Spec.Template.Spec.InitContainers[0].Args, "--mirror=https://=https://evil.example.com")
			},
		} {
			for _, fetcher := range []models.Fetcher{installed, upgrade} {
				released(fetcher)
				change(ctx, deployment, func(d *appsv1.Deployment) {
					metav1.SetMetaDataAnnotation(&d.ObjectMeta, "model.github.com/fetcher", fmt.Sprintf(
						`{"template":%q,"image":"evil.example.com/steal:1","mirrors":["https://=https://evil.example.com"]}`, hash))
					edit(d)
				})
				drive().settled(ctx, box)
				Expect(fetch().Image).To(Equal("modelbox-controller:v1"), name)
				Expect(fetch().Args).NotTo(ContainElement(ContainSubstring("evil")), name)
			}
		}
	})

	It("is removed from the pods with the field", func() {
		box := serving(ctx, uri)
		drive().settled(ctx, box)
		change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Model = nil })
		drive().settled(ctx, box)
		deployment := get(ctx, &appsv1.Deployment{ObjectMeta: box.ObjectMeta})
		Expect(deployment.Spec.Template.Spec.InitContainers).To(BeEmpty())
		Expect(deployment.Spec.Template.Spec.Volumes).To(BeEmpty())
		Expect(get(ctx, box).Status.Fetcher).To(BeNil())
	})

	It("becomes an image volume, and a claim", func() {
		since(35, "image volumes")
		box := serving(ctx, uri)
		drive().settled(ctx, box)
		deployment := &appsv1.Deployment{ObjectMeta: box.ObjectMeta}
		volume := func() corev1.Volume { return get(ctx, deployment).Spec.Template.Spec.Volumes[0] }
		change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Model.URI = modelImage })
		drive().settled(ctx, box)
		Expect(volume().Image.Reference).To(Equal(strings.TrimPrefix(modelImage, "oci://")))
		Expect(deployment.Spec.Template.Spec.InitContainers).To(BeEmpty())
		change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Model.URI = "pvc://models/bert" })
		drive().settled(ctx, box)
		Expect(volume().PersistentVolumeClaim).To(Equal(&corev1.PersistentVolumeClaimVolumeSource{ClaimName: "models", ReadOnly: true}))
		Expect(volume().Image).To(BeNil())
	})
})

// An API server without image volumes removes them from a pod template, and the mounts with
// them, without an error: the pods would start without their model.
var _ = Describe("a model that is an image, where the API server has no image volumes", Ordered, func() {
	ctx := context.Background()
	const told = "image volumes need Kubernetes 1.35 or later; use https:// or s3://"
	BeforeAll(func() {
		if lacks(35, "image volumes") != "" {
			alone()
			return
		}
		if !thoroughly {
			Skip("it needs a control plane of its own: make test-long")
		}
		alone()
		served, err := testenv.Start(testenv.Options{EmulatedVersion: "1.34"})
		Expect(err).NotTo(HaveOccurred())
		env, served = served, env
		DeferCleanup(func() error {
			env, served = served, env
			return served.Stop()
		})
	})
	refused := func(box *modelv1.ModelBox) {
		GinkgoHelper()
		_, _, err := drive().reconcile(ctx, box)
		Expect(err).To(MatchError(ContainSubstring(told)), "it is retried, because an upgraded API server accepts it")
		Expect(ready(ctx, box)).To(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Reason", status.ReasonChildRefused), HaveField("Message", ContainSubstring(told))))
	}

	It("is refused, and no pod starts", func() {
		box := serving(ctx, modelImage)
		refused(box)
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(box), &appsv1.Deployment{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})

	It("is refused, and what runs stays", func() {
		box := serving(ctx, "pvc://models")
		drive().settled(ctx, box)
		deployment := &appsv1.Deployment{ObjectMeta: box.ObjectMeta}
		before := get(ctx, deployment).Generation
		change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Model.URI = modelImage })
		refused(box)
		Expect(get(ctx, deployment).Generation).To(Equal(before))
		By("the way out")
		change(ctx, box, func(box *modelv1.ModelBox) { box.Spec.Model.URI = "https://models.example.com/bert.onnx" })
		drive().settled(ctx, box)
		Expect(get(ctx, deployment).Spec.Template.Spec.InitContainers).To(HaveLen(1))
	})
})

// fetching is a ModelBox whose pods fetch a model. Each reconcile is that of a process that has just
// started.
type fetching struct {
	*driven
	ctx  context.Context
	fake *clocktesting.FakePassiveClock
	box  *modelv1.ModelBox
	// pod has the metadata of the pods of the Deployment's revision.
	pod *corev1.Pod
}

func newFetching(ctx context.Context, model modelv1.Model) *fetching {
	GinkgoHelper()
	box := createBox(ctx, func(s *modelv1.ModelBoxSpec) { s.Model, s.Replicas = &model, new(int32(2)) })
	f := &fetching{drive(), ctx, clocktesting.NewFakePassiveClock(time.Now()), box, nil}
	f.clock = f.fake
	f.settled(ctx, f.box)
	change(ctx, f.deployment(), func(d *appsv1.Deployment) { metav1.SetMetaDataAnnotation(&d.ObjectMeta, api.AnnotationRevision, "1") })
	f.pod = podOf(ctx, f.box.ObjectMeta, "other", corev1.ContainerStatus{})
	return f
}

func (f *fetching) deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.box.Namespace, Name: f.box.Name}}
}

// restart replaces a pod by one that is ready, and whose container that fetches has said a message.
func (f *fetching) restart(name, message string, how ...func(*corev1.Pod)) {
	GinkgoHelper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.box.Namespace, Name: name}}
	Expect(client.IgnoreNotFound(env.Client.Delete(f.ctx, pod))).To(Succeed())
	pod.Labels, pod.OwnerReferences, pod.Spec = f.pod.Labels, f.pod.OwnerReferences, get(f.ctx, f.deployment()).Spec.Template.Spec
	for _, how := range how {
		how(pod)
	}
	Expect(env.Client.Create(f.ctx, pod)).To(Succeed())
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: models.Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}},
	}}
	Expect(env.Client.Status().Update(f.ctx, pod)).To(Succeed())
}

// ready reconciles while so many pods are ready, a second later, because status is written once a
// second, and returns how often they were read.
func (f *fetching) ready(pods int32) (read int) {
	GinkgoHelper()
	f.fake.SetTime(f.fake.Now().Add(time.Second))
	deploymentStatus(f.ctx, f.box.ObjectMeta, pods)
	for range 3 {
		requests, result, err := f.reconcile(f.ctx, f.box)
		Expect(err).NotTo(HaveOccurred())
		if pods > 0 && pods == *f.box.Spec.Replicas {
			Expect(result.RequeueAfter).To(BeZero())
		}
		Expect(requests["list"]).To(BeElementOf(0, 2), "the ReplicaSets, and one page of the pods")
		read += requests["list"] / 2
	}
	get(f.ctx, f.box)
	return read
}

func (f *fetching) differs() *metav1.Condition {
	return meta.FindStatusCondition(get(f.ctx, f.box).Status.Conditions, status.ConditionModelDiffers)
}

var _ = Describe("the pods of one revision", Ordered, ContinueOnFailure, func() {
	BeforeAll(alone)
	digest := func(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }
	said := func(digit string) string { return fmt.Sprintf(`{"models":[{"digest":%q,"bytes":7}]}`, digest(digit)) }
	const uri = "https://models.example.com/bert.onnx"

	It("are read when others are ready, and ModelDiffers is there while they serve other bytes", func(ctx SpecContext) {
		f := newFetching(ctx, modelv1.Model{URI: uri})
		f.restart("a", said("1"))
		f.restart("b", said("1"))
		Expect(f.ready(2)).To(Equal(1))
		Expect(f.differs()).To(BeNil())
		Expect(f.box.Status.Model.Digest).To(Equal(digest("1")))

		By("a pod that fetches the same again")
		Expect(f.ready(1)).To(BeZero())
		f.restart("b", said("1"))
		Expect(f.ready(2)).To(Equal(1))
		Expect(f.differs()).To(BeNil())

		By("a pod that fetches other bytes")
		Expect(f.ready(1)).To(BeZero())
		f.restart("b", said("2"))
		Expect(f.ready(2)).To(Equal(1))
		Expect(f.differs()).To(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "DigestsDiffer"), HaveField("ObservedGeneration", f.box.Generation),
			HaveField("Message", "the pods that were read serve different bytes: spec.model is "+digest("1")+" in 1 of 2 and "+digest("2")+" in 1 of 2; "+
				"pin the model, or restart the pods")))
		Expect(readiness(ctx, f.box)()).To(Equal("True Ready"))
		Expect(f.ready(2)).To(BeZero(), "at rest")
		Expect(f.differs()).NotTo(BeNil())

		By("one pod that serves, and the same two again")
		Expect(f.ready(1)).To(BeZero())
		Expect(f.differs()).To(BeNil())
		Expect(f.ready(2)).To(Equal(1))
		Expect(f.differs()).NotTo(BeNil())

		By("a restart of the other one")
		Expect(f.ready(1)).To(BeZero())
		f.restart("a", said("2"))
		Expect(f.ready(2)).To(Equal(1))
		Expect(f.differs()).To(BeNil())
		Expect(f.box.Status.Model.Digest).To(Equal(digest("2")))

		By("messages of others")
		Expect(f.ready(1)).To(BeZero())
		f.restart("b", `{"models":[{"digest":"sha256:evil","bytes":7}]}`)
		f.restart("c", said("3"), func(pod *corev1.Pod) { pod.OwnerReferences = nil })
		f.restart("d", said("3"), func(pod *corev1.Pod) { pod.Spec.InitContainers[0].Image = "evil.example.com/fetch:1" })
		Expect(f.ready(2)).To(Equal(1))
		Expect(f.differs()).To(BeNil())

		By("no model")
		Expect(f.ready(1)).To(BeZero())
		f.restart("b", said("1"))
		Expect(f.ready(2)).To(Equal(1))
		Expect(f.differs()).NotTo(BeNil())
		change(ctx, f.box, func(box *modelv1.ModelBox) { box.Spec.Model = nil })
		Expect(f.ready(1)).To(BeZero())
		Expect(f.ready(2)).To(BeZero())
		Expect(f.differs()).To(BeNil())
	})

	It("are read once if the model is pinned", func(ctx SpecContext) {
		f := newFetching(ctx, modelv1.Model{URI: uri, SHA256: strings.Repeat("1", 64)})
		f.restart("a", said("1"))
		f.restart("b", said("1"))
		Expect(f.ready(2)).To(Equal(1))
		Expect(f.ready(1)).To(BeZero())
		f.restart("b", said("2"))
		Expect(f.ready(2)).To(BeZero())
		Expect(f.differs()).To(BeNil())
	})
})
