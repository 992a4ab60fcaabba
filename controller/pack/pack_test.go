// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/test/filled"
	"github.com/modelbox-operator/modelbox-operator/webhook/modelbox"
)

// random is an object as it can come from an API server.
func random(seed int64, obj client.Object) client.Object {
	filled.Filler(seed).NilChance(0.6).NumElements(1, 3).Funcs(
		func(t *metav1.TypeMeta, _ randfill.Continue) { *t = metav1.TypeMeta{} },
		func(s *string, c randfill.Continue) { *s = strconv.Itoa(c.Intn(1000)) },
	).Fill(obj)
	return obj
}

func sorts() []client.Object {
	return []client.Object{
		&modelv1.ModelBox{}, &appv1.App{}, &mydomainv1beta1.Genericdaemon{}, &extensionv1.UnitedDeployment{}, &mtsrev1.Eru{},
		&appsv1.Deployment{}, &appsv1.DaemonSet{}, &corev1.Service{}, &autoscalingv2.HorizontalPodAutoscaler{},
	}
}

func TestWhatIsPackedComesOutAgain(t *testing.T) {
	for _, sort := range sorts() {
		t.Run(fmt.Sprintf("%T", sort), func(t *testing.T) {
			t.Parallel()
			for seed := range int64(100) {
				obj := random(seed, reflect.New(reflect.TypeOf(sort).Elem()).Interface().(client.Object))
				want := obj.DeepCopyObject()
				packed := Pack(obj, t.Name())
				if _, ok := packed.(*Object); !ok {
					t.Fatalf("seed %d: it was not packed", seed)
				}
				for range 2 { // The second reader gets what the first one got.
					if got := packed.DeepCopyObject(); !equality.Semantic.DeepEqual(got, want) {
						t.Fatalf("seed %d: %+v came out, %+v went in", seed, got, want)
					}
				}
			}
		})
	}
}

func TestHandlersSeeMetadata(t *testing.T) {
	t.Parallel()
	obj := box(1)
	obj.Annotations = map[string]string{"seen": "1", "other": "2"}
	obj.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0)))
	want := obj.DeepCopy()
	packed := Pack(obj, t.Name(), "seen", "absent")
	if packed.GetName() != want.Name || packed.GetNamespace() != want.Namespace || packed.GetUID() != want.UID ||
		packed.GetResourceVersion() != want.ResourceVersion || packed.GetGeneration() != want.Generation ||
		!packed.GetDeletionTimestamp().Equal(want.DeletionTimestamp) || !reflect.DeepEqual(packed.GetOwnerReferences(), want.OwnerReferences) {
		t.Errorf("a handler sees %+v, want what is in %+v", packed, want.ObjectMeta)
	}
	if got := packed.GetAnnotations(); !reflect.DeepEqual(got, map[string]string{"seen": "1"}) {
		t.Errorf("a handler sees the annotations %v", got)
	}
	if got := Open[*modelv1.ModelBox](packed).Annotations; !reflect.DeepEqual(got, want.Annotations) {
		t.Errorf("a reader sees the annotations %v", got)
	}
	if Pack(packed, t.Name()) != packed {
		t.Error("what is packed is packed again")
	}
	if Open[*modelv1.ModelBox](want) != want {
		t.Error("what is not packed is opened all the same")
	}
}

// TestReadersMayChangeTheirCopies is for the race detector, too.
func TestReadersMayChangeTheirCopies(t *testing.T) {
	t.Parallel()
	want := box(1)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			packed := Pack(box(1), t.Name())
			for range 50 {
				mine := Open[*modelv1.ModelBox](packed)
				if !equality.Semantic.DeepEqual(mine, want) {
					t.Errorf("%+v came out", mine)
					return
				}
				mine.Name, mine.OwnerReferences[0].Name, mine.Spec.Envs[0].Value = "x", "x", strconv.Itoa(i)
				*mine.OwnerReferences[0].Controller = false
			}
		})
	}
	group.Wait()
}

// Text that is not UTF-8 has no place in JSON. Such an object is kept as it is.
func TestWhatCannotBeEncodedIsKept(t *testing.T) {
	t.Parallel()
	obj := box(1)
	obj.Spec.Image = "\xff"
	want := obj.DeepCopy()
	if got := Pack(obj, t.Name()); !equality.Semantic.DeepEqual(got, want) {
		t.Errorf("%+v was made of it", got)
	}
}

func TestLikeObjectsAreShort(t *testing.T) {
	t.Parallel()
	likeness := fmt.Sprintf("%s %p", t.Name(), t) // Nobody else's, however often this is run.
	first, second := Pack(box(1), likeness).(*Object), Pack(box(2), likeness).(*Object)
	if 2*len(second.data) > len(first.data) {
		t.Errorf("an object takes %d bytes, and one that is much like it %d", len(first.data), len(second.data))
	}
	if !strings.HasPrefix(first.data, string(plain)) || !strings.HasPrefix(second.data, string(compressed)) {
		t.Error("the first is not what the second is compressed against")
	}
}

func box(i int) *modelv1.ModelBox {
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

func deployment(i int) *appsv1.Deployment {
	b := box(i)
	d := &appsv1.Deployment{ObjectMeta: b.ObjectMeta}
	d.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "main", Image: b.Spec.Image, Env: b.Spec.Envs, ReadinessProbe: b.Spec.ReadinessProbe, Resources: *b.Spec.Resources,
	}}
	return d
}

func BenchmarkPack(b *testing.B) {
	for name, sample := range map[string]client.Object{"ModelBox": box(1), "Deployment": deployment(1)} {
		Pack(sample.DeepCopyObject().(client.Object), name)
		packed := Pack(sample.DeepCopyObject().(client.Object), name).(*Object)
		b.Run(name+"/pack", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := packed.form.encode(sample); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/open", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				packed.DeepCopyObject()
			}
		})
		b.Run(name+"/copy", func(b *testing.B) { // What a cache without packing does.
			b.ReportAllocs()
			for b.Loop() {
				sample.DeepCopyObject()
			}
		})
	}
}
