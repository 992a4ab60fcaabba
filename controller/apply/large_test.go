// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// largeChild is a client whose cache has a child that is too large to be read. It has no other methods.
type largeChild struct{ client.Client }

func (largeChild) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetSelfLink(cache.TooLarge)
	return nil
}

func TestAChildThatIsTooLargeIsReported(t *testing.T) {
	t.Parallel()
	owner := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Name: "box"}}
	_, err := Writer{Client: largeChild{}}.Apply(t.Context(), owner, &Child{Desired: &corev1.Service{}, Live: &corev1.Service{}})
	readiness, retry := ReadinessOf(err)
	const want = `reading Service "box": it is larger than 262144 bytes: remove what other clients added, or delete it`
	if readiness == nil || retry == nil || readiness.Reason != status.ReasonChildRefused || readiness.Message != want {
		t.Errorf("%v: readiness %+v", err, readiness)
	}
}
