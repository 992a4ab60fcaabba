// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
)

// scaledServer is an API server with one ModelBox and its children, as the controller needs it.
// Each write of the controller is compared with the number of replicas that the ModelBox has then.
type scaledServer struct {
	client.Client
	t        *testing.T
	rnd      *rand.Rand
	version  int
	box      *modelv1.ModelBox
	children map[reflect.Type]client.Object
	written  int
}

func (s *scaledServer) next() string {
	s.version++
	return strconv.Itoa(s.version)
}

func (s *scaledServer) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	var found client.Object = s.box
	if reflect.TypeOf(into) != reflect.TypeOf(s.box) {
		found = s.children[reflect.TypeOf(into)]
	}
	if found == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

func (s *scaledServer) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return nil
}

var errLost = errors.New("no response")

// write stores a child. Sometimes it is refused, or stored without a response.
func (s *scaledServer) write(child client.Object) error {
	fault := s.rnd.IntN(10)
	if fault == 0 {
		return errLost
	}
	if deployment, ok := child.(*appsv1.Deployment); ok && *deployment.Spec.Replicas != *s.box.Spec.Replicas {
		s.t.Errorf("the Deployment gets %d replicas, and the object has %d", *deployment.Spec.Replicas, *s.box.Spec.Replicas)
	}
	s.written++
	child.SetResourceVersion(s.next())
	s.children[reflect.TypeOf(child)] = child.DeepCopyObject().(client.Object)
	if fault == 1 {
		return errLost
	}
	return nil
}

func (s *scaledServer) Create(_ context.Context, child client.Object, _ ...client.CreateOption) error {
	if s.children[reflect.TypeOf(child)] != nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{}, child.GetName())
	}
	child.SetUID(types.UID("child"))
	return s.write(child)
}

func (s *scaledServer) Patch(_ context.Context, into client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(into)
	live := s.children[reflect.TypeOf(into)]
	switch {
	case err != nil || patch.Type() != types.ApplyPatchType || live == nil:
		return fmt.Errorf("unexpected patch of %T: %s: %w", into, data, err)
	}
	applied := reflect.New(reflect.TypeOf(into).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(data, applied); err != nil {
		return err
	}
	if applied.GetResourceVersion() != live.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{}, into.GetName(), nil)
	}
	err = s.write(applied)
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(applied).Elem())
	return err
}

func (s *scaledServer) Delete(_ context.Context, child client.Object, _ ...client.DeleteOption) error {
	delete(s.children, reflect.TypeOf(child))
	return nil
}

func (s *scaledServer) SubResource(name string) client.SubResourceClient {
	s.t.Errorf("a request to %s", name)
	return nil
}

// update updates the ModelBox as the API server does: the schema and the webhooks judge it. It
// reports whether it was allowed.
func (s *scaledServer) update(how func(*modelv1.ModelBox)) bool {
	box, old := s.box.DeepCopy(), s.box
	how(box)
	if box.Spec.Replicas == nil {
		box.Spec.Replicas = new(int32(1)) // The default of the schema.
	}
	kind := modelbox.Kind()
	kind.SetDefaults(box, old)
	if len(modelbox.Immutable(box, old)) > 0 {
		return false
	}
	if errs := modelbox.Validate(box); len(errs) > 0 {
		s.t.Fatal(errs)
	}
	box.Generation++
	box.ResourceVersion = s.next()
	s.box = box
	return true
}

// TestNothingIsWrittenAgainstTheAutoscaler makes 1,000 random steps: the autoscaler scales, users
// edit the spec with and without replicas and switch autoscaling on and off, the controller
// reconciles from a cache that is behind, restarts, and gets no response. The number of replicas
// changes only by the autoscaler, and by users who set one.
func TestNothingIsWrittenAgainstTheAutoscaler(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(30, 3))
	box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "box", Generation: 1, ResourceVersion: "1"}}
	box.Spec = modelv1.ModelBoxSpec{Image: "server:1", Replicas: new(int32(1))}
	modelbox.Default(box)
	s := &scaledServer{t: t, rnd: rnd, version: 1, box: box, children: map[reflect.Type]client.Object{}}
	start := func() *Reconciler {
		r := &Reconciler{}
		r.Reconciler = workload.Reconciler{
			Shared: workload.Shared{Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC))},
			Writer: apply.Writer{Access: apply.Access{Client: s, Live: s}, Recorder: &events.FakeRecorder{}},
		}
		return r
	}
	r, cached := start(), box
	for s.children[reflect.TypeFor[*appsv1.Deployment]()] == nil {
		_, _ = r.Reconcile(t.Context(), box, &status.Writer{}) // A new object is created as the cache has it.
	}
	var scalings, numbers, kept, switches, reconciles int
	for step := range 1000 {
		want, on := *s.box.Spec.Replicas, s.box.Spec.Autoscaling != nil
		switch rnd.IntN(8) {
		case 0: // The autoscaler, by /scale, without admission.
			if on && s.children[reflect.TypeFor[*autoscalingv2.HorizontalPodAutoscaler]()] != nil {
				want = 1 + rnd.Int32N(9)
				scaled := s.box.DeepCopy()
				scaled.Spec.Replicas, scaled.Generation, scaled.ResourceVersion = &want, scaled.Generation+1, s.next()
				s.box = scaled
				scalings++
			}
		case 1:
			s.update(func(b *modelv1.ModelBox) { b.Spec.Image = fmt.Sprintf("server:%d", step) })
		case 2: // A manifest without replicas.
			if on {
				if !s.update(func(b *modelv1.ModelBox) { b.Spec.Replicas, b.Spec.Image = nil, fmt.Sprintf("server:%d", step) }) {
					t.Errorf("step %d: a manifest without replicas is refused", step)
				}
				kept++
			}
		case 3: // Another number.
			number := want + 1 + rnd.Int32N(9)
			if !s.update(func(b *modelv1.ModelBox) { b.Spec.Replicas = &number }) {
				t.Errorf("step %d: autoscaling: %t, another number is refused", step, on)
			}
			want = number
			numbers++
		case 4:
			s.update(func(b *modelv1.ModelBox) {
				b.Spec.Autoscaling = &modelv1.Autoscaling{MaxReplicas: 9 + rnd.Int32N(9)}
				if on {
					b.Spec.Autoscaling = nil
				} else if rnd.IntN(2) == 0 {
					b.Spec.Replicas = nil
				}
			})
			switches++
		case 5:
			r, cached = start(), s.box
		default:
			if rnd.IntN(3) > 0 {
				cached = s.box
			}
			reconciled := cached.DeepCopy()
			_, _ = r.Reconcile(t.Context(), reconciled, &status.Writer{}) // An error is one of the server, and leads to another reconcile.
			stored := s.box.DeepCopy()
			stored.Status = reconciled.Status
			s.box = stored
			reconciles++
		}
		if got := *s.box.Spec.Replicas; got != want {
			t.Fatalf("step %d: %d replicas, want %d", step, got, want)
		}
	}
	if scalings < 20 || numbers < 20 || kept < 20 || switches < 50 || s.written < 50 {
		t.Errorf("%d scalings, %d other numbers, %d kept, %d switches, %d writes in %d reconciles: too few", scalings, numbers, kept, switches, s.written, reconciles)
	}
	for range 100 { // Until there is no fault in between.
		_, _ = r.Reconcile(t.Context(), s.box.DeepCopy(), &status.Writer{})
	}
	deployment := s.children[reflect.TypeFor[*appsv1.Deployment]()].(*appsv1.Deployment)
	if *deployment.Spec.Replicas != *s.box.Spec.Replicas {
		t.Errorf("%d replicas in the end, want %d", *deployment.Spec.Replicas, *s.box.Spec.Replicas)
	}
}
