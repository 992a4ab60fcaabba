// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fieldownership_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
)

// managed returns one entry of managedFields for each set of fields.
func managed(sets ...string) []metav1.ManagedFieldsEntry {
	var entries []metav1.ManagedFieldsEntry
	for _, fields := range sets {
		entries = append(entries, metav1.ManagedFieldsEntry{
			Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(fields),
		})
	}
	return entries
}

func TestIsSet(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		entries  []metav1.ManagedFieldsEntry
		manifest string
		// scalar is for a field that is now "x", object for one that is an object.
		scalar, object bool
	}{
		"no manager":                      {},
		"the field":                       {entries: managed(`{"f:spec":{"f:a":{"f:b":{}}}}`), scalar: true, object: true},
		"something in it":                 {entries: managed(`{"f:spec":{"f:a":{"f:b":{"f:c":{}}}}}`), scalar: true, object: true},
		"itself and something in it":      {entries: managed(`{"f:spec":{"f:a":{"f:b":{".":{},"f:c":{}}}}}`), scalar: true, object: true},
		"what it lies in, empty":          {entries: managed(`{"f:spec":{"f:a":{}}}`)},
		"an empty spec":                   {entries: managed(`{"f:spec":{}}`)},
		"what it lies in, and a sibling":  {entries: managed(`{"f:spec":{".":{},"f:a":{".":{},"f:c":{}}}}`)},
		"a sibling":                       {entries: managed(`{"f:spec":{"f:b":{}}}`)},
		"its namesake elsewhere":          {entries: managed(`{"f:status":{"f:a":{"f:b":{}}}}`)},
		"the second of two":               {entries: managed(`{"f:spec":{"f:x":{}}}`, `{"f:spec":{"f:a":{"f:b":{}}}}`), scalar: true, object: true},
		"an entry without fields":         {entries: []metav1.ManagedFieldsEntry{{Manager: "a"}}},
		"an entry that is broken":         {entries: managed(`{"f:spec":`), scalar: true, object: true},
		"the manifest":                    {manifest: `{"spec":{"a":{"b":"x"}}}`, scalar: true},
		"another value in the manifest":   {manifest: `{"spec":{"a":{"b":"y"}}}`},
		"a number in the manifest":        {manifest: `{"spec":{"a":{"b":1}}}`},
		"an empty object in the manifest": {manifest: `{"spec":{"a":{"b":{ }}}}`, object: true},
		"an object in the manifest":       {manifest: `{"spec":{"a":{"b":{"c":1}}}}`},
		"a null in the manifest":          {manifest: `{"spec":{"a":{"b":null}}}`},
		"a sibling in the manifest":       {manifest: `{"spec":{"a":{"c":"x"}}}`},
		"a manifest of something":         {manifest: `{"spec":{"a":5}}`},
		"a manifest that is broken":       {manifest: `{"spec":{"a":{"b":"x"`},
		"a manifest that is a list":       {manifest: `[]`},
		"a manifest with no content":      {manifest: ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			meta := &metav1.ObjectMeta{ManagedFields: tc.entries, Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: tc.manifest}}
			owners := fieldownership.Of(meta)
			if got := owners.IsSet("/spec/a/b", func(value any) bool { return value == "x" }); got != tc.scalar {
				t.Errorf("as a scalar: %t, want %t", got, tc.scalar)
			}
			if got := owners.IsSet("/spec/a/b", nil); got != tc.object {
				t.Errorf("as an object: %t, want %t", got, tc.object)
			}
			if got := owners.HasManagedFields(); got != (len(tc.entries) > 0) {
				t.Errorf("known: %t", got)
			}
		})
	}
}

func TestIsPortNameSet(t *testing.T) {
	t.Parallel()
	const tcp80 = `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":`
	for name, tc := range map[string]struct {
		fields, manifest string
		want             bool
	}{
		"the name":                       {fields: tcp80 + `{".":{},"f:name":{},"f:port":{}}}}}`, want: true},
		"another field":                  {fields: tcp80 + `{".":{},"f:port":{},"f:targetPort":{}}}}}`},
		"the port, with nothing in it":   {fields: tcp80 + `{}}}}`},
		"ports, with nothing in them":    {fields: `{"f:spec":{"f:ports":{}}}`},
		"another port":                   {fields: `{"f:spec":{"f:ports":{"k:{\"port\":81,\"protocol\":\"TCP\"}":{"f:name":{}}}}}`},
		"another protocol":               {fields: `{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"UDP\"}":{"f:name":{}}}}}`},
		"the manifest":                   {manifest: `{"spec":{"ports":[{"port":81},{"port":80,"name":"a"}]}}`, want: true},
		"the manifest, another name":     {manifest: `{"spec":{"ports":[{"port":80,"name":"b"}]}}`},
		"the manifest, a protocol":       {manifest: `{"spec":{"ports":[{"port":80,"protocol":"TCP","name":"a"}]}}`, want: true},
		"the manifest, another":          {manifest: `{"spec":{"ports":[{"port":80,"protocol":"UDP","name":"a"}]}}`},
		"the manifest, without":          {manifest: `{"spec":{"ports":[{"port":80}]}}`},
		"the manifest, nonsense":         {manifest: `{"spec":{"ports":[1,{"port":"80","name":"a"}]}}`},
		"the manifest, nonsense instead": {manifest: `{"spec":{"ports":{"port":80}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			meta := &metav1.ObjectMeta{Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: tc.manifest}}
			if tc.fields != "" {
				meta.ManagedFields = managed(tc.fields)
			}
			owners := fieldownership.Of(meta)
			if got := owners.IsPortNameSet(&modelv1.Port{Port: 80, Name: "a"}); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
		})
	}
}

// A value of any type is set by a manager, or by the manifest of a client-side apply that has it.
// Names with a slash are escaped in pointers.
func TestIsSetToAValue(t *testing.T) {
	t.Parallel()
	meta := &metav1.ObjectMeta{
		ManagedFields: managed(`{"f:spec":{"f:resources":{"f:limits":{"f:example.com/gpu":{}}},"f:scheduling":{"f:tolerations":{}}}}`),
		Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: `{"spec":{"scheduling":{"nodeSelector":{"pool":"a"}}}}`},
	}
	owners := fieldownership.Of(meta)
	for pointer, want := range map[string]bool{
		"/spec/resources/limits/example.com~1gpu": true, "/spec/resources/limits/cpu": false, "/spec/scheduling/tolerations": true,
		"/spec/scheduling/nodeSelector": true, "/spec/scheduling/schedulerName": false,
	} {
		equal := func(value any) bool { return cmp.Equal(value, map[string]any{"pool": "a"}) }
		if got := owners.IsSet(pointer, equal); got != want {
			t.Errorf("%s: %t, want %t", pointer, got, want)
		}
	}
	if owners.IsSet("/spec/scheduling/nodeSelector", func(any) bool { return false }) {
		t.Error("another value is taken for the one of the manifest")
	}
}
