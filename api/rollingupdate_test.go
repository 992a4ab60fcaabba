// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

func TestIntOrPercent(t *testing.T) {
	t.Parallel()
	for in, want := range map[intstr.IntOrString]intstr.IntOrString{
		intstr.FromInt32(5):           intstr.FromInt32(5),
		intstr.FromInt32(0):           intstr.FromInt32(0),
		intstr.FromInt32(1<<30 - 1):   intstr.FromInt32(1<<30 - 1),
		intstr.FromInt32(1<<31 - 1):   intstr.FromInt32(1<<30 - 1),
		intstr.FromString("99999999"): intstr.FromInt32(99999999),
		intstr.FromString("5"):        intstr.FromInt32(5),
		intstr.FromString("5%"):       intstr.FromString("5%"),
		intstr.FromString("05"):       intstr.FromString("05"),
		intstr.FromString("nonsense"): intstr.FromString("nonsense"),
		intstr.FromString(""):         intstr.FromString(""),
	} {
		if got := modelv1.IntOrPercent(in); got != want {
			t.Errorf("%#v becomes %#v, want %#v", in, got, want)
		}
	}
}
