// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1defaults "k8s.io/kubernetes/pkg/apis/apps/v1"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
)

// answerTo returns what the API server answers to the creation of a Deployment: it has defaults, and an
// entry of our field manager.
func answerTo(tb testing.TB, desired *appsv1.Deployment) *appsv1.Deployment {
	tb.Helper()
	typed, err := toTyped(desired)
	if err != nil {
		tb.Fatal(err)
	}
	owned, err := typed.ToFieldSet()
	if err != nil {
		tb.Fatal(err)
	}
	fields, err := owned.ToJSON()
	if err != nil {
		tb.Fatal(err)
	}
	answer := desired.DeepCopy()
	answer.TypeMeta = metav1.TypeMeta{} // The client decodes it from protobuf.
	appsv1defaults.SetObjectDefaults_Deployment(answer)
	answer.UID, answer.ResourceVersion, answer.Generation, answer.CreationTimestamp = "u", "1", 1, metav1.NewTime(time.Unix(1, 0))
	answer.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(string(fields)),
	}}
	return answer
}

// BenchmarkAnswer is what the answer to a write costs beside its decoding.
func BenchmarkAnswer(b *testing.B) {
	desired := deployment(func(d *appsv1.Deployment) {
		container := &d.Spec.Template.Spec.Containers[0]
		for _, name := range []string{"C", "D", "E", "F", "G", "H"} {
			container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: name})
		}
		container.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{}}, PeriodSeconds: 10}
	})
	answer := answerTo(b, desired)
	b.Run("Rewritten", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if paths := rewritten(desired, answer); len(paths) > 0 {
				b.Fatal(paths)
			}
		}
	})
	b.Run("Stored", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if cache.Stored(answer) == "" {
				b.Fatal("nothing is owned")
			}
		}
	})
}
