// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReplicasThatAreLeftOut: 1 is what the schema sets in an update without replicas. It is kept
// away from what an autoscaler or a schedule has scaled, unless a client has set it.
func TestReplicasThatAreLeftOut(t *testing.T) {
	t.Parallel()
	const (
		update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
		number        = `"f:spec":{"f:replicas":{}}`
		lastApplied   = `"f:metadata":{"f:annotations":{"f:` + corev1.LastAppliedConfigAnnotation + `":{}}}`
		image         = `"f:spec":{"f:image":{}}`
	)
	entry := func(operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Operation: operation, Subresource: subresource, FieldsV1: metav1.NewFieldsV1("{" + fields + "}")}
	}
	meta := func(manifest string, entries ...metav1.ManagedFieldsEntry) metav1.ObjectMeta {
		m := metav1.ObjectMeta{ManagedFields: entries}
		if manifest != "" {
			m.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: manifest}
		}
		return m
	}
	without := `{"spec":{"image":"nginx:1"}}`
	for name, test := range map[string]struct {
		meta metav1.ObjectMeta
		kept bool
	}{
		"removed from a manifest by a client-side apply": {meta(without, entry(update, "", lastApplied+","+number)), true},
		"removed from an object in memory":               {meta(without), true},
		"replaced by a manifest without it":              {meta("", entry(update, "", number)), true},
		"1 in the manifest":                              {meta(`{"spec":{"replicas":1}}`, entry(update, "", lastApplied+","+number)), false},
		"1 by a server-side apply":                       {meta("", entry(apply, "", number)), false},
		"a patch of what a client-side apply made":       {meta(without, entry(update, "", lastApplied), entry(update, "", number)), false},
		"a patch of what a server-side apply made":       {meta("", entry(apply, "", image), entry(update, "", number)), false},
		"scaled before, and applied now":                 {meta("", entry(apply, "", image), entry(update, "scale", number)), true},
	} {
		for _, r := range []Replicas{{Now: true, Old: true}, {Old: true}, {Scheduled: true}, {Now: true, Scheduled: true}, {}} {
			for _, stored := range []int32{0, 1, 6} {
				sent := new(int32(1))
				r.Meta, r.Sent, r.Stored = &test.meta, sent, &stored
				r.Keep(&sent)
				want := int32(1)
				if test.kept && (r.Now || r.Old || r.Scheduled) {
					want = stored
				}
				if *sent != want {
					t.Errorf("%s, %+v: %d replicas, want %d", name, r, *sent, want)
				}
			}
		}
	}
}
