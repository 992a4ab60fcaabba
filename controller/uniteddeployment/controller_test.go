// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

func TestDecide(t *testing.T) {
	now := metav1.Now()
	target := func(change ...func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}}
		d.Spec.Replicas = new(int32(2))
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, AvailableReplicas: 2}
		for _, c := range change {
			c(d)
		}
		return d
	}
	for _, test := range []struct {
		name   string
		target *appsv1.Deployment
		holder string
		want   string // empty: it writes the Deployment
		ready  bool
	}{
		{name: "missing", want: "TargetNotFound"},
		{name: "held by another", target: target(), holder: "another", want: "Conflict"},
		{name: "held by another, with other replicas", target: target(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(9)) }), holder: "x", want: "Conflict"},
		{name: "being deleted", target: target(func(d *appsv1.Deployment) { d.DeletionTimestamp = &now }), want: "WaitingForDeletion"},
		{name: "other replicas", target: target(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) })},
		{name: "unset replicas are 1", target: target(func(d *appsv1.Deployment) { d.Spec.Replicas = nil })},
		{name: "not observed yet", target: target(func(d *appsv1.Deployment) { d.Generation = 3 }), want: "Progressing"},
		{name: "too many pods", target: target(func(d *appsv1.Deployment) { d.Status.Replicas = 3 }), want: "Progressing"},
		{name: "too few pods", target: target(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 }), want: "Progressing"},
		{name: "as desired", target: target(), want: "Ready", ready: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ud := &extensionv1.UnitedDeployment{Spec: extensionv1.UnitedDeploymentSpec{DeploymentName: "web", Replicas: new(int32(2))}}
			readiness := decide(ud, nil, test.target, test.holder)
			if readiness == nil {
				if test.want != "" {
					t.Errorf("it writes, want %s", test.want)
				}
				return
			}
			if readiness.Reason != test.want || readiness.Ready != test.ready {
				t.Errorf("readiness is %+v, want reason %q and ready %t", readiness, test.want, test.ready)
			}
		})
	}
}

func united(name string, uid types.UID, second int, target string) extensionv1.UnitedDeployment {
	ud := extensionv1.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
	if second >= 0 {
		ud.CreationTimestamp = metav1.NewTime(time.Unix(int64(second), 0))
	}
	ud.Spec.DeploymentName, ud.Spec.Replicas = target, new(int32(1))
	return ud
}

func scaler(apiVersion, kind, name string) autoscalingv2.HorizontalPodAutoscaler {
	hpa := autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "hpa"}}
	hpa.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: name}
	return hpa
}

func ownedBy(gvk schema.GroupVersionKind) *appsv1.Deployment {
	owner := &metav1.ObjectMeta{Name: "box", UID: "o"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	d.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, gvk)}
	return d
}

func TestHolderOf(t *testing.T) {
	now := metav1.Now()
	leaving := united("old", "a", 1, "web")
	leaving.DeletionTimestamp = &now
	for _, test := range []struct {
		name    string
		ud      extensionv1.UnitedDeployment
		target  *appsv1.Deployment
		scalers []autoscalingv2.HorizontalPodAutoscaler
		rivals  []extensionv1.UnitedDeployment
		want    string // A part of the result, "" if no other controller scales the Deployment.
	}{
		{name: "no other controller"},
		{name: "itself", rivals: []extensionv1.UnitedDeployment{united("me", "m", 5, "web")}},
		{name: "an older one", rivals: []extensionv1.UnitedDeployment{united("old", "z", 4, "web")}, want: `UnitedDeployment "old"`},
		{name: "a younger one", rivals: []extensionv1.UnitedDeployment{united("young", "a", 6, "web")}},
		{name: "one of the same second, smaller uid", rivals: []extensionv1.UnitedDeployment{united("twin", "a", 5, "web")}, want: `"twin"`},
		{name: "one of the same second, larger uid", rivals: []extensionv1.UnitedDeployment{united("twin", "z", 5, "web")}},
		{name: "the oldest of two", rivals: []extensionv1.UnitedDeployment{united("b", "b", 3, "web"), united("a", "a", 2, "web")}, want: `"a"`},
		{name: "an older one of another Deployment", rivals: []extensionv1.UnitedDeployment{united("old", "z", 4, "other")}},
		{name: "an older one that is being deleted", rivals: []extensionv1.UnitedDeployment{leaving}},
		{name: "one that is not stored yet", ud: united("new", "", -1, "web"), rivals: []extensionv1.UnitedDeployment{united("b", "b", 3, "web")}, want: `"b"`},
		{name: "an autoscaler", scalers: []autoscalingv2.HorizontalPodAutoscaler{scaler("apps/v1", "Deployment", "web")}, want: `HorizontalPodAutoscaler "hpa"`},
		{name: "an autoscaler of another version", scalers: []autoscalingv2.HorizontalPodAutoscaler{scaler("apps/v1beta9", "Deployment", "web")}, want: `"hpa"`},
		{name: "an autoscaler of another Deployment", scalers: []autoscalingv2.HorizontalPodAutoscaler{scaler("apps/v1", "Deployment", "other")}},
		{name: "an autoscaler of another kind", scalers: []autoscalingv2.HorizontalPodAutoscaler{scaler("apps/v1", "StatefulSet", "web")}},
		{name: "a ModelBox", target: ownedBy(modelv1.SchemeGroupVersion.WithKind("ModelBox")), want: `ModelBox "box" controls`},
		{name: "an App", target: ownedBy(appv1.SchemeGroupVersion.WithKind("App")), want: `App "box" controls`},
		{name: "an owner that sets no replicas of ours", target: ownedBy(schema.GroupVersionKind{Group: "x.io", Version: "v1", Kind: "App"})},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ud := test.ud
			if ud.Name == "" {
				ud = united("me", "m", 5, "web")
			}
			target := test.target
			if target == nil {
				target = &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			}
			stored := []client.Object{&ud}
			for i := range test.scalers {
				stored = append(stored, &test.scalers[i])
			}
			for i := range test.rivals {
				if test.rivals[i].Name != ud.Name {
					stored = append(stored, &test.rivals[i])
				}
			}
			r := New(listing{objects: stored}, nil, clock.RealClock{})
			got, err := r.holder(t.Context(), &ud, target)
			if err != nil || (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("holder says %q, want something with %q: %v", got, test.want, err)
			}
		})
	}
}

// listing is a client that lists some objects, of all namespaces and whatever they act on.
type listing struct {
	client.Client
	objects []client.Object
}

func (l listing) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	var items []runtime.Object
	for _, obj := range l.objects {
		_, united := obj.(*extensionv1.UnitedDeployment)
		if _, wanted := list.(*extensionv1.UnitedDeploymentList); united == wanted {
			items = append(items, obj)
		}
	}
	return meta.SetList(list, items)
}
