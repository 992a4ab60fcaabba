// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(cpu string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("2Gi")}
}

func same(a, b corev1.ResourceList) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

func TestListsAreShared(t *testing.T) {
	t.Parallel()
	l := &lists{}
	one, other := list("1"), list("1")
	if !same(l.share(one), one) || !same(l.share(other), one) {
		t.Error("two equal lists are not one")
	}
	milli := list("1000m")
	if !same(l.share(milli), milli) {
		t.Error("1 and 1000m are written differently, and one of them is lost")
	}
	if l.share(nil) != nil || l.share(corev1.ResourceList{}) == nil {
		t.Error("an empty list is another than it was")
	}
	for i := range 2 * mostShared {
		l.share(list(fmt.Sprint(i + 2)))
	}
	if len(l.known) != mostShared {
		t.Errorf("%d lists are kept", len(l.known))
	}
	unknown := list("999")
	if !same(l.share(unknown), unknown) {
		t.Error("a list that is one too many is not left alone")
	}
}

// TestListsAreSharedSafely is for the race detector: what is shared is read by many.
func TestListsAreSharedSafely(t *testing.T) {
	t.Parallel()
	l := &lists{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				held := corev1.ResourceRequirements{Limits: l.share(list("1"))}
				mine := held.DeepCopy()
				cpu := mine.Limits[corev1.ResourceCPU]
				cpu.Add(resource.MustParse("1"))
				mine.Limits[corev1.ResourceCPU] = cpu
				if got := held.Limits[corev1.ResourceCPU]; got.String() != "1" {
					t.Errorf("a reader changed what is shared: %s", got.String())
				}
			}
		})
	}
	all.Wait()
}
