// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"reflect"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// driven is a controller whose reconciles are called one by one. It reads from the API server,
// and counts its requests.
type driven struct {
	client   client.Client
	live     client.Reader
	recorder *events.FakeRecorder
	clock    clock.PassiveClock
	requests map[string]int
	// cached are the objects in a cache that is behind, nil for one that the cache does not
	// have.
	cached map[client.ObjectKey]map[string]client.Object
	// write decides whether and when a write is done; nil is at once.
	write func(do func() error) error
}

// drive returns a controller that has just started.
func drive() *driven {
	d := &driven{
		recorder: events.NewFakeRecorder(1000), clock: clock.RealClock{}, requests: map[string]int{},
		cached: map[client.ObjectKey]map[string]client.Object{},
	}
	counted := intercepted(func(verb string, _ any, do func() error) error {
		if verb != "status" {
			d.requests[verb]++
		}
		if d.write != nil {
			return d.write(do)
		}
		return do()
	})
	d.client = interceptor.NewClient(counted, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			old, behind := d.cached[key][fmt.Sprintf("%T", obj)]
			switch {
			case !behind:
				return c.Get(ctx, key, obj, opts...)
			case old == nil:
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(old.DeepCopyObject()).Elem())
			return nil
		},
	})
	d.live = interceptor.NewClient(env.Client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			d.requests["list"]++
			return c.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			d.requests["get"]++
			return c.Get(ctx, key, obj, opts...)
		},
	})
	d.client = limit.New(cached{d.client}, d)
	return d
}

func (d *driven) Now() time.Time                  { return d.clock.Now() }
func (d *driven) Since(t time.Time) time.Duration { return d.clock.Since(t) }

// behind keeps the current version of an object in the cache, or its absence, whatever changes
// afterwards.
func (d *driven) behind(ctx context.Context, obj client.Object) {
	GinkgoHelper()
	key, kind := client.ObjectKeyFromObject(obj), fmt.Sprintf("%T", obj)
	if d.cached[key] == nil {
		d.cached[key] = map[string]client.Object{}
	}
	d.cached[key][kind] = nil
	err := env.Client.Get(ctx, key, obj)
	if err == nil {
		d.cached[key][kind] = obj.DeepCopyObject().(client.Object)
	}
	Expect(client.IgnoreNotFound(err)).To(Succeed())
}

// reconcile reconciles an object once, and returns the number of requests, those for status
// excepted, by verb.
func (d *driven) reconcile(ctx context.Context, obj client.Object) (map[string]int, reconcile.Result, error) {
	GinkgoHelper()
	clear(d.requests)
	result, err := d.reconciler(kindOf(obj)).Reconcile(ctx, requestFor(obj))
	return d.requests, result, err
}

// reconciler returns the reconciler of a kind of a process that has just started.
func (d *driven) reconciler(kind string) reconcile.Reconciler {
	return reconcilerOf(kind, apply.Writer{Access: apply.Access{Client: d.client, Live: d.live}, Recorder: d.recorder}, d)
}

// settled reconciles an object, which must succeed, and then once more, which must send no
// request, and once with a controller that has just started.
func (d *driven) settled(ctx context.Context, obj client.Object) {
	GinkgoHelper()
	_, _, err := d.reconcile(ctx, obj)
	Expect(err).NotTo(HaveOccurred())
	for _, controller := range []*driven{d, drive()} {
		requests, _, err := controller.reconcile(ctx, obj)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests).To(BeEmpty(), "requests at rest")
	}
}

// again reconciles an object with some processes that have just started.
func (d *driven) again(ctx context.Context, obj client.Object) {
	GinkgoHelper()
	for range 3 {
		next := drive()
		next.clock = d.clock
		_, _, err := next.reconcile(ctx, obj)
		Expect(err).NotTo(HaveOccurred())
	}
}

// events returns the notes of the events since the last call.
func (d *driven) events() []string {
	var notes []string
	for {
		select {
		case note := <-d.recorder.Events:
			notes = append(notes, note)
		default:
			return notes
		}
	}
}

// richBox returns a ModelBox with a field of each sort with which an edit can prevent an apply.
func richBox(namespace string) *modelv1.ModelBox {
	probe := func(port int32) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}}}
	}
	return &modelv1.ModelBox{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "box"},
		Spec: modelv1.ModelBoxSpec{
			Image:          "nginx:1.7.9",
			Replicas:       new(int32(2)),
			ServiceType:    corev1.ServiceTypeNodePort,
			Ports:          []modelv1.Port{{Name: "http", Port: 80}, {Name: "metrics", Port: 9090}},
			ReadinessProbe: probe(80),
			Envs: []corev1.EnvVar{
				{Name: "A", Value: "1"},
				{Name: "EMPTY"},
				{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
					LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}, Key: "key",
				}}},
				{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
				{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
			},
			PodTemplate: &runtime.RawExtension{Raw: []byte(`{"spec": {
				"nodeSelector": {"disk": "ssd"},
				"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
				"tolerations": [{"key": "gpu", "operator": "Exists"}],
				"topologySpreadConstraints": [{"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 1,
					"labelSelector": {"matchLabels": {"app": "box"}}}],
				"volumes": [
					{"name": "scratch"},
					{"name": "settings", "configMap": {"name": "settings", "items": [{"key": "a", "path": "a"}]}},
					{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}},
						{"downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
							{"path": "cpu", "resourceFieldRef": {"containerName": "box", "resource": "limits.cpu"}}]}}]}},
					{"name": "host", "hostPath": {"path": "/data"}},
					{"name": "claim", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"],
						"resources": {"requests": {"storage": "1Gi"}}}}}}],
				"containers": [
					{"name": "box", "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
						"volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]},
					{"name": "side", "image": "side:1", "ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}],
						"envFrom": [{"secretRef": {"name": "env"}}]}]
			}}`)},
		},
	}
}

func container(spec *corev1.PodSpec, name string) *corev1.Container {
	GinkgoHelper()
	for i := range spec.Containers {
		if spec.Containers[i].Name == name {
			return &spec.Containers[i]
		}
	}
	Fail("there is no container " + name)
	return nil
}

func variable(spec *corev1.PodSpec, name string) *corev1.EnvVar {
	GinkgoHelper()
	env := container(spec, "box").Env
	for i := range env {
		if env[i].Name == name {
			return &env[i]
		}
	}
	Fail("there is no variable " + name)
	return nil
}

var _ = Describe("a child that another field manager changed", Ordered, ContinueOnFailure, func() {
	BeforeAll(alone)
	ctx := context.Background()
	update := func(obj client.Object, edit func()) {
		GinkgoHelper()
		Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		edit()
		Expect(env.Client.Update(ctx, obj, client.FieldOwner("other-manager"))).To(Succeed())
	}

	var (
		box        *modelv1.ModelBox
		deployment *appsv1.Deployment
		d          *driven
		now        *clocktesting.FakePassiveClock
	)
	BeforeEach(func() {
		box, d, now = richBox(newNamespace()), drive(), clocktesting.NewFakePassiveClock(time.Now())
		deployment, d.clock = &appsv1.Deployment{ObjectMeta: box.ObjectMeta}, now
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		d.settled(ctx, box)
	})

	It("keeps a restart by kubectl, whatever podTemplate has", func() {
		update(box, func() {
			box.Spec.PodTemplate = raw(`{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2020-01-01T00:00:00Z","a":"b"}}}`)
		})
		d.settled(ctx, box)
		update(deployment, func() {
			metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, "kubectl.kubernetes.io/restartedAt", "2026-01-01T00:00:00Z")
		})
		d.settled(ctx, box)
		Expect(get(ctx, deployment).Spec.Template.Annotations).To(Equal(map[string]string{
			"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z", "a": "b",
		}))
	})

	It("is contested when it is modified repeatedly, and reverted three times a minute from then on", func() {
		modify := func() {
			GinkgoHelper()
			update(deployment, func() { container(&deployment.Spec.Template.Spec, "box").Image = "evil:1" })
		}
		image := func() string { return container(&get(ctx, deployment).Spec.Template.Spec, "box").Image }
		repairs := 0
		var contested []string
		for range 3 * 60 { // Three minutes.
			if image() != "evil:1" {
				repairs++
				modify()
			}
			_, result, err := d.reconcile(ctx, box)
			Expect(err).NotTo(HaveOccurred())
			if image() == "evil:1" {
				condition := ready(ctx, box)
				Expect(condition.Reason).To(Equal(status.ReasonContested))
				Expect(condition.Message).To(And(ContainSubstring(`"other-manager"`), ContainSubstring(`[name="box"].image`)))
				Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", 20*time.Second)))
			}
			for _, note := range d.events() {
				if len(note) > 17 && note[:17] == "Warning Contested" {
					contested = append(contested, note)
				}
			}
			now.SetTime(now.Now().Add(time.Second))
		}
		Expect(repairs).To(BeNumerically("<=", 8+3*3+1))
		Expect(repairs).To(BeNumerically(">=", 8+3*3-2))
		Expect(contested).To(HaveLen(1), "one event for the whole period")

		By("the other manager stops")
		for range 3 {
			_, result, err := d.reconcile(ctx, box)
			Expect(err).NotTo(HaveOccurred())
			now.SetTime(now.Now().Add(result.RequeueAfter))
		}
		requests, result, err := d.reconcile(ctx, box)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests).To(BeEmpty())
		Expect(result.RequeueAfter).To(BeZero())
		Expect(image()).To(Equal("nginx:1.7.9"))
		Expect(ready(ctx, box).Reason).NotTo(Equal(status.ReasonContested))
	})

	It("limits the repairs of its labels as well", func() {
		writes := 0
		for range 20 {
			update(deployment, func() { deployment.Labels["app.kubernetes.io/name"] = "evil" })
			requests, _, err := d.reconcile(ctx, box)
			Expect(err).NotTo(HaveOccurred())
			writes += requests["apply"] + requests["patch"]
		}
		Expect(writes).To(Equal(10-2), "two creates, seven applies, and the change of the managedFields before the first one")
		Expect(ready(ctx, box).Reason).To(Equal(status.ReasonContested))

		By("a change of the spec")
		now.SetTime(now.Now().Add(time.Second)) // For the status.
		update(box, func() { box.Spec.Image = "nginx:2" })
		requests, _, err := d.reconcile(ctx, box)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests["apply"]).To(Equal(1))
		Expect(ready(ctx, box).Reason).NotTo(Equal(status.ReasonContested))
	})

	It("is not read while the object is paused", func() {
		update(box, func() { box.Spec.Paused, box.Spec.Image = true, "nginx:2" })
		for _, edit := range []func(){
			func() { deployment.Spec.Replicas = new(int32(7)) },
			func() { deployment.Labels["app.kubernetes.io/name"] = "other" },
			func() { deployment.OwnerReferences = nil },
		} {
			update(deployment, edit)
			for _, controller := range []*driven{d, drive()} {
				requests, _, err := controller.reconcile(ctx, box)
				Expect(err).NotTo(HaveOccurred())
				Expect(requests).To(BeEmpty())
			}
		}
		Expect(env.Client.Delete(ctx, deployment)).To(Succeed())
		requests, _, err := d.reconcile(ctx, box)
		Expect(err).NotTo(HaveOccurred())
		Expect(requests).To(BeEmpty())
	})
})

// ready returns an object's Ready condition.
func ready(ctx context.Context, obj status.Object) *metav1.Condition {
	GinkgoHelper()
	Expect(env.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	condition := meta.FindStatusCondition(obj.GetConditions(), status.ConditionReady)
	Expect(condition).NotTo(BeNil(), fmt.Sprintf("%T %s has no Ready condition", obj, obj.GetName()))
	return condition
}
