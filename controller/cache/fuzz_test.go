// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/app"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
	"github.com/modelbox-operator/modelbox-operator/kinds/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/kinds/uniteddeployment"
	"github.com/modelbox-operator/modelbox-operator/test/extremes"
)

// storedKinds are the kinds by number, each with a function that defaults and validates an
// object and returns its workload, as its controller does before it sends a request.
var storedKinds = []struct {
	gvk   schema.GroupVersionKind
	build func(client.Object) (*workload.Workload, field.ErrorList)
}{
	{modelv1.SchemeGroupVersion.WithKind("ModelBox"), func(obj client.Object) (*workload.Workload, field.ErrorList) {
		o := obj.(*modelv1.ModelBox)
		modelbox.Default(o, nil, nil)
		s := &o.Spec
		return &workload.Workload{Owner: o, AppName: "modelbox", Container: s.Name, Image: s.Image, Resources: s.Resources, Ports: s.Ports,
			Env: s.Envs, EnvFrom: s.EnvFrom, ReadinessProbe: s.ReadinessProbe, LivenessProbe: s.LivenessProbe, StartupProbe: s.StartupProbe,
			ImagePullPolicy: s.ImagePullPolicy, ImagePullSecrets: s.ImagePullSecrets, Command: s.Command, Args: s.Args, SharedMemory: s.SharedMemory,
			TerminationGracePeriodSeconds: s.TerminationGracePeriodSeconds, Strategy: s.Strategy, ProgressDeadlineSeconds: s.ProgressDeadlineSeconds,
			PodTemplate: s.PodTemplate, Replicas: s.Replicas, Rollout: s.RollingUpdate, ServiceType: s.ServiceType}, modelbox.Validate(o)
	}},
	{appv1.SchemeGroupVersion.WithKind("App"), func(obj client.Object) (*workload.Workload, field.ErrorList) {
		o := obj.(*appv1.App)
		app.Default(o, nil, nil)
		s := &o.Spec
		return &workload.Workload{Owner: o, AppName: "app", Container: o.Name, Image: s.Image, Resources: s.Resources, Ports: s.Ports,
			ImagePullPolicy: s.ImagePullPolicy, ImagePullSecrets: s.ImagePullSecrets, Command: s.Command, Args: s.Args, EnvFrom: s.EnvFrom,
			ProgressDeadlineSeconds: s.ProgressDeadlineSeconds,
			Env:                     s.Envs, PodTemplate: s.PodTemplate, Replicas: s.Replicas}, app.Validate(o)
	}},
	{mydomainv1beta1.SchemeGroupVersion.WithKind("Genericdaemon"), func(obj client.Object) (*workload.Workload, field.ErrorList) {
		o := obj.(*mydomainv1beta1.Genericdaemon)
		genericdaemon.Default(o, nil, nil)
		s := &o.Spec
		return &workload.Workload{Owner: o, AppName: "genericdaemon", Container: o.Name, Image: s.Image, Resources: s.Resources, Env: s.Envs,
			PodTemplate: s.PodTemplate, Rollout: s.RollingUpdate}, genericdaemon.Validate(o)
	}},
	{extensionv1.SchemeGroupVersion.WithKind("UnitedDeployment"), func(obj client.Object) (*workload.Workload, field.ErrorList) {
		o := obj.(*extensionv1.UnitedDeployment)
		uniteddeployment.Default(o, nil, nil)
		return nil, uniteddeployment.Validate(o)
	}},
	{mtsrev1.SchemeGroupVersion.WithKind("Eru"), func(obj client.Object) (*workload.Workload, field.ErrorList) {
		o := obj.(*mtsrev1.Eru)
		eru.Default(o, nil, nil)
		return nil, eru.Validate(o)
	}},
}

// FuzzStored passes an object that an API server could have stored through the cache, the
// defaults, the validation and the builders of children. There is no panic, and the memory
// that is allocated is in proportion to the object's length.
func FuzzStored(f *testing.F) {
	seed(f)
	scheme := apiruntime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, kind byte, spec, status, metadata []byte) {
		k := storedKinds[int(kind)%len(storedKinds)]
		data := fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"1"%s},"spec":%s,"status":%s}`,
			k.gvk.GroupVersion(), k.gvk.Kind, metadata, spec, status)
		if len(data) > 1<<20 {
			t.Skip("the API server stores no such object")
		}
		before := allocated()
		_ = process(t, scheme, k.gvk, data, k.build)
		// Every few bytes can be an error of Kubernetes' own validation, with a path and a
		// detail; the race detector has as much again.
		const base, factor = 8 << 20, 4000
		if used := allocated() - before; used > uint64(base+factor*len(data)) {
			t.Fatalf("%d bytes were allocated for %d: %.2000s", used, len(data), data)
		}
	})
}

// process does what the controller does with an object, and returns what is wrong with it.
func process(t *testing.T, scheme *apiruntime.Scheme, gvk schema.GroupVersionKind, data []byte,
	build func(client.Object) (*workload.Workload, field.ErrorList),
) string {
	obj := cache.DecodeObject(scheme, gvk, data)
	if obj == nil {
		return ""
	}
	obj = packed(t, obj)
	if failure := cache.DecodeErrorOf(obj); failure != nil {
		return failure.Message
	}
	w, errs := build(obj)
	text := fmt.Sprint(rules.First(errs).ToAggregate())
	if w == nil || len(errs) > 0 {
		return text
	}
	w.OwnerKind = gvk
	deployment, err := w.Deployment()
	if err != nil {
		return err.Error()
	}
	packed(t, deployment)
	if service := w.Service(); service != nil {
		packed(t, service)
	}
	return text
}

// packed packs an object and returns what is read from the cache.
func packed(t *testing.T, obj client.Object) client.Object {
	want := obj.DeepCopyObject().(client.Object)
	want.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	got := cache.Packed(obj)
	got.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	before, err := cache.Marshal(want)
	after, failure := cache.Marshal(got)
	if err == nil && failure == nil && !bytes.Equal(before, after) && cache.DecodeErrorOf(got) == nil {
		t.Fatalf("the object that is unpacked differs (-packed +unpacked):\n%.2000s", cmp.Diff(want, got))
	}
	return got
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// seed adds each extreme value at each place that differs in type.
func seed(f *testing.F) {
	places := []struct {
		kind   byte
		format string
	}{
		{0, `{"image":"a","replicas":%s}`},
		{0, `{"image":"a","resources":{"limits":{"cpu":%s},"requests":{"cpu":"1"}}}`},
		{0, `{"image":"a","resources":{"limits":{"memory":%s},"requests":{"memory":"1"}},"resourceType":"custom"}`},
		{0, `{"image":"a","envs":[{"name":"A","value":"x","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":%s}}}]}`},
		{0, `{"image":"a","readinessProbe":{"tcpSocket":{"port":%s}}}`},
		{0, `{"image":"a","ports":[{"port":1,"targetPort":%s}]}`},
		{0, `{"image":"a","rollingUpdate":%s}`},
		{0, `{"image":"a","podTemplate":%s}`},
		{0, `{"image":"a","podTemplate":{"spec":{"terminationGracePeriodSeconds":%s}}}`},
		{0, `{"image":"a","podTemplate":{"metadata":{"creationTimestamp":%s}}}`},
		{1, `{"image":"a","podTemplate":{"spec":{"containers":[{"name":"s","resources":{"limits":{"cpu":%s},"requests":{"cpu":"1"}}}]}}}`},
		{2, `{"image":"a","label":%s}`},
		{3, `{"deploymentName":"a","replicas":%s}`},
		{4, `{"enabled":true,"schedule":%s}`},
		{4, `{"startingDeadlineSeconds":%s}`},
	}
	for _, value := range extremes.Nasty() {
		text, err := json.Marshal(value)
		if err != nil {
			f.Fatal(err)
		}
		for _, place := range places {
			f.Add(place.kind, fmt.Appendf(nil, place.format, text), []byte(`{}`), []byte(nil))
		}
		f.Add(byte(0), text, []byte(`{}`), []byte(nil))
		f.Add(byte(0), []byte(`{"image":"a"}`), text, []byte(nil))
		f.Add(byte(4), []byte(`{}`), fmt.Appendf(nil, `{"lastScheduleTime":%s,"history":[{"slot":%s}]}`, text, text), []byte(nil))
		f.Add(byte(0), []byte(`{"image":"a"}`), []byte(`{}`), fmt.Appendf(nil, `,"managedFields":[{"time":%s}]`, text))
		f.Add(byte(0), []byte(`{"image":"a"}`), []byte(`{}`), fmt.Appendf(nil, `,"deletionTimestamp":%s,"labels":{"a":%s}`, text, text))
	}
	for _, template := range []string{
		`{"spec":{"containers":[` + strings.Repeat(`{"name":1,"image":2},`, 2000) + `{}]}}`,
		`{"spec":{"containers":[` + strings.Repeat(`{"nam":1},`, 2000) + `{}]}}`,
		`{"spec":` + strings.Repeat(`{"a":`, 3000) + `1` + strings.Repeat(`}`, 3000) + `}`,
		`{"metadata":{"labels":{` + strings.Repeat(`"a b":"c d",`, 3000) + `"a":"b"}}}`,
	} {
		f.Add(byte(0), fmt.Appendf(nil, `{"image":"a","podTemplate":%s}`, template), []byte(`{}`), []byte(nil))
	}
	f.Add(byte(0), []byte(`{"image":"a","resources":{"limits":{"hugepages-1e-999999999":"1","hugepages-1e999999999":"1","cpu":"1"}}}`), []byte(`{}`), []byte(nil))
	f.Add(byte(0), []byte(`{"image":"a","podTemplate":{"spec":{"overhead":{"cpu":"\u0031e-999999999"}}}}`), []byte(`{}`), []byte(nil))
}
