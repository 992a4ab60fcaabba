// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// Each selector is the stored one, whatever its length, and a short one costs no request.
func TestSelector(t *testing.T) {
	t.Parallel()
	for labels := range 40 {
		want := &metav1.LabelSelector{MatchLabels: map[string]string{}}
		for i := range labels + 1 {
			want.MatchLabels[fmt.Sprintf("example.com/label-%d", i)] = "value"
		}
		named := metav1.ObjectMeta{Namespace: "team", Name: "web"}
		for _, stored := range []client.Object{
			&appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{Selector: want}},
			&appsv1.DaemonSet{ObjectMeta: named, Spec: appsv1.DaemonSetSpec{Selector: want}},
		} {
			held := trimmed(t, stored.DeepCopyObject().(client.Object))
			server := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(stored).Build()
			got, err := Selector(t.Context(), server, held)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%T with %d labels (-want +got):\n%s%v", stored, labels+1, diff, err)
			}
			nothing := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
			_, err = Selector(t.Context(), nothing, held)
			if isLong := want.Size() > maxSelector; apierrors.IsNotFound(err) != isLong {
				t.Errorf("%T with a selector of %d bytes: %v", stored, want.Size(), err)
			}
		}
	}
}
