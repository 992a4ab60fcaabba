// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/test/filled"
)

// random returns an object that an API server could send.
func random(seed int64, obj client.Object) client.Object {
	filled.Filler(seed).NilChance(0.6).NumElements(1, 3).Funcs(
		func(t *metav1.TypeMeta, _ randfill.Continue) { *t = metav1.TypeMeta{} },
		func(s *string, c randfill.Continue) { *s = strconv.Itoa(c.Intn(1000)) },
	).Fill(obj)
	return obj
}

// packedTypes returns an empty object of each type in the cache.
func packedTypes(t *testing.T) []client.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	found := []client.Object{&appsv1.Deployment{}, &appsv1.DaemonSet{}, &corev1.Service{}, &autoscalingv2.HorizontalPodAutoscaler{}}
	for _, typ := range scheme.AllKnownTypes() {
		if obj, ok := reflect.TypeAssert[client.Object](reflect.New(typ)); ok {
			found = append(found, obj)
		}
	}
	if len(found) < 4+5 {
		t.Fatalf("found %d types only", len(found))
	}
	return found
}

func TestUnpackedObjectsEqualThePackedOnes(t *testing.T) {
	var p packer
	for _, sample := range packedTypes(t) {
		t.Run(fmt.Sprintf("%T", sample), func(t *testing.T) {
			t.Parallel()
			for seed := range int64(100) {
				obj := random(seed, reflect.New(reflect.TypeOf(sample).Elem()).Interface().(client.Object))
				want := obj.DeepCopyObject()
				packed := p.pack(obj, false)
				if _, ok := packed.(*packedObject); !ok {
					t.Fatalf("seed %d: the object was not packed", seed)
				}
				for range 2 { // A second reader gets the same.
					if got := packed.DeepCopyObject(); !equality.Semantic.DeepEqual(got, want) {
						t.Fatalf("seed %d: unpacked %+v, packed %+v", seed, got, want)
					}
				}
			}
		})
	}
}

func TestMetadataIsReadable(t *testing.T) {
	t.Parallel()
	obj := newBox(1)
	annotation := readable[len(readable)-1]
	obj.Annotations = map[string]string{annotation: "1", "other": "2"}
	obj.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0)))
	want := obj.DeepCopy()
	var p packer
	packed := p.pack(obj, false)
	if packed.GetName() != want.Name || packed.GetNamespace() != want.Namespace || packed.GetUID() != want.UID ||
		packed.GetResourceVersion() != want.ResourceVersion || packed.GetGeneration() != want.Generation ||
		!packed.GetDeletionTimestamp().Equal(want.DeletionTimestamp) || !reflect.DeepEqual(packed.GetOwnerReferences(), want.OwnerReferences) {
		t.Errorf("the readable metadata is %+v, want that of %+v", packed, want.ObjectMeta)
	}
	if got := packed.GetAnnotations(); !reflect.DeepEqual(got, map[string]string{annotation: "1"}) {
		t.Errorf("the readable annotations are %v", got)
	}
	if got := Unpack[*modelv1.ModelBox](packed).Annotations; !reflect.DeepEqual(got, want.Annotations) {
		t.Errorf("the unpacked annotations are %v", got)
	}
	if again, err := p.trimAndPack(packed); again != any(packed) || err != nil {
		t.Error("a packed object is packed again")
	}
	if Unpack[*modelv1.ModelBox](want) != want {
		t.Error("an object that is not packed is not returned as it is")
	}
}

// TestReadersMayChangeTheirCopies is for the race detector, too.
func TestReadersMayChangeTheirCopies(t *testing.T) {
	t.Parallel()
	want := newBox(1)
	var p packer
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			packed := p.pack(newBox(1), false)
			for range 50 {
				mine := Unpack[*modelv1.ModelBox](packed)
				if !equality.Semantic.DeepEqual(mine, want) {
					t.Errorf("unpacked %+v", mine)
					return
				}
				mine.Name, mine.OwnerReferences[0].Name, mine.Spec.Envs[0].Value = "x", "x", strconv.Itoa(i)
				*mine.OwnerReferences[0].Controller = false
			}
		})
	}
	group.Wait()
}

// A string that is not UTF-8 cannot be encoded in JSON. Such an object is not packed.
func TestObjectsThatCannotBeEncodedAreNotPacked(t *testing.T) {
	t.Parallel()
	obj := newBox(1)
	obj.Spec.Image = "\xff"
	want := obj.DeepCopy()
	if got := new(packer).pack(obj, false); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("it became %+v", got)
	}
}

// Compressed with the first object as dictionary, objects take less than half of what they
// take compressed each by itself.
func TestDictionary(t *testing.T) {
	t.Parallel()
	var p packer
	first := p.pack(newBox(0), false).(*packedObject)
	if !strings.HasPrefix(first.data, string(uncompressed)) {
		t.Error("the first object, which is the dictionary, is compressed")
	}
	var withDictionary, alone int
	for i := range 100 {
		packed := p.pack(newBox(1+i), false).(*packedObject)
		if !strings.HasPrefix(packed.data, string(compressed)) {
			t.Errorf("object %d is not compressed", 1+i)
		}
		data, err := marshal(newBox(1 + i))
		if err != nil {
			t.Fatal(err)
		}
		withDictionary, alone = withDictionary+len(packed.data), alone+len(s2.Encode(nil, data))
	}
	t.Logf("%d bytes with the dictionary, %d without", withDictionary/100, alone/100)
	if 2*withDictionary > alone {
		t.Errorf("the dictionary saves too little: %d bytes with it, %d without", withDictionary, alone)
	}
}

func newBox(i int) *modelv1.ModelBox {
	b := &modelv1.ModelBox{}
	b.Name, b.Namespace, b.UID, b.Generation = fmt.Sprintf("box-%d", i), "default", "6a1e2c55-0000-4000-8000-000000000000", 1
	b.ResourceVersion = "7"
	b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "u", Controller: new(true)}}
	b.Spec.Image = "registry.example.com/team/server:1.2"
	b.Spec.Ports = []modelv1.Port{{Name: "http", Port: 8080}}
	for i := range 5 {
		b.Spec.Envs = append(b.Spec.Envs, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: "value"})
	}
	modelbox.Default(b, nil, nil)
	return b
}

func newDeployment(i int) *appsv1.Deployment {
	b := newBox(i)
	d := &appsv1.Deployment{ObjectMeta: b.ObjectMeta}
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "main", Image: b.Spec.Image, Env: b.Spec.Envs, ReadinessProbe: b.Spec.ReadinessProbe, Resources: *b.Spec.Resources,
	}}
	return d
}

func BenchmarkPack(b *testing.B) {
	for name, sample := range map[string]client.Object{"ModelBox": newBox(1), "Deployment": newDeployment(1)} {
		var p packer
		p.pack(sample.DeepCopyObject().(client.Object), false)
		packed := p.pack(sample.DeepCopyObject().(client.Object), false).(*packedObject)
		b.Run(name+"/pack", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := packed.codec.encode(sample); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/unpack", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				packed.DeepCopyObject()
			}
		})
		b.Run(name+"/copy", func(b *testing.B) { // A cache that does not pack copies.
			b.ReportAllocs()
			for b.Loop() {
				sample.DeepCopyObject()
			}
		})
	}
}
