// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/modelbox-operator/modelbox-operator/api"
)

func TestFrozen(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		annotations map[string]string
		missing     bool
		err         error
		reason      string
		frozen      bool
	}{
		"no annotation":      {},
		"another annotation": {annotations: map[string]string{"example.com/frozen": "a"}},
		"no namespace":       {missing: true},
		"a reason":           {annotations: map[string]string{api.AnnotationFrozen: "end of the year"}, reason: "end of the year", frozen: true},
		"an empty reason":    {annotations: map[string]string{api.AnnotationFrozen: ""}, frozen: true},
		"a long reason":      {annotations: map[string]string{api.AnnotationFrozen: strings.Repeat("a", 9999)}, reason: strings.Repeat("a", maxReason-3) + "...", frozen: true},
		"not readable":       {err: errors.New("refused")},
	} {
		builder := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if test.err != nil {
					return test.err
				}
				return c.Get(ctx, key, obj, opts...)
			},
		})
		if !test.missing {
			builder.WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Annotations: test.annotations}})
		}
		reason, frozen, err := Reader{Live: builder.Build()}.Frozen(t.Context(), "team")
		if reason != test.reason || frozen != test.frozen || !errors.Is(err, test.err) {
			t.Errorf("%s: %q, %t, %v; want %q, %t, %v", name, reason, frozen, err, test.reason, test.frozen, test.err)
		}
	}
}
