// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/modelbox-operator/modelbox-operator/test/hostile"
)

// answers returns the responses of both webhooks of a kind.
func answers(t *testing.T, mux http.Handler, kind *hostile.Kind, object, old string) (out []*admissionv1.AdmissionResponse) {
	t.Helper()
	for _, path := range kind.Paths() {
		var review admissionv1.AdmissionReview
		if text := post(mux, path, kind.Review(object, old)); json.Unmarshal(text, &review) != nil || review.Response == nil {
			t.Fatalf("%.300s", text)
		}
		out = append(out, review.Response)
	}
	return out
}

// A spec that changes is judged, whatever is stored and whatever else is in the body: by both webhooks, in all
// kinds with a pod template.
func TestASpecThatChangesIsJudged(t *testing.T) {
	t.Parallel()
	mux := webhooks(t)
	deep := strings.Repeat(`{"f:a":`, 100) + `{}` + strings.Repeat(`}`, 100)
	groups := strings.TrimSuffix(strings.Repeat(`7,`, 478), ",")
	sources := strings.TrimSuffix(strings.Repeat(`{"configMapRef":{"name":"a"}},`, 40), ",")
	stored := map[string]string{
		"within the bounds":       `,"podTemplate":{}`,
		"deep managedFields":      `,"podTemplate":{"metadata":{"managedFields":[{"manager":"m","operation":"Update","fieldsV1":` + deep + `}]}}`,
		"478 groups, 40 sources":  `,"podTemplate":{"spec":{"securityContext":{"supplementalGroups":[` + groups + `]},"containers":[{"name":"side","image":"s:1","envFrom":[` + sources + `]}]}}`,
		"too long":                `,"podTemplate":{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 140<<10) + `"}}}`,
		"too many":                `,"podTemplate":{"spec":{"tolerations":[` + strings.TrimSuffix(strings.Repeat(`{"operator":"Exists"},`, 600), ",") + `]}}`,
		"a quantity, stored long": `,"podTemplate":{"spec":{"overhead":{"cpu":"1e999999999"}}}`,
	}
	metadata := map[string]string{
		"":                  ``,
		"a long annotation": `,"annotations":{"a":"` + strings.Repeat("y", 100<<10) + `"}`,
		"managedFields":     `,"managedFields":[{"manager":"m","operation":"Update","fieldsType":"FieldsV1","fieldsV1":` + deep + `}]`,
		"many owners":       `,"finalizers":[` + strings.Repeat(`"",`, 9999) + `""],"managedFields":[` + strings.Repeat(`{},`, 9999) + `{}]`,
		"a long manifest":   `,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"` + strings.Repeat("y", 300<<10) + `"}`,
		"wrong fields":      `,"managedFields":[{"manager":7,"time":"no time"}],"labels":7,"annotations":[],"generation":"x"`,
		"case-folded names": `,"DeletionTimestamp":"2026-01-01T00:00:00Z","Managedfields":7`,
	}
	wrong := map[string]string{
		"an image":                `"image":"A B"`,
		"a case-folded image":     `"image":"A B","Image":"a:1"`,
		"an expensive quantity":   `"image":"b:1","resources":{"limits":{"cpu":"1e999999999"}}`,
		"a directive":             `"image":"b:1","podTemplate":{"spec":{"$patch":"replace"}}`,
		"an unknown field":        `"image":"b:1","podTemplate":{"spec":{"Containers":[]}}`,
		"a number, far too large": `"image":"b:1","podTemplate":{"spec":{"priority":9e99}}`,
		"a number of no int32":    `"image":"b:1","podTemplate":{"spec":{"priority":9223372036854775808}}`,
	}
	judged := 0
	for i := range hostile.Kinds[:3] {
		kind := &hostile.Kinds[i]
		object := func(meta, spec string) string {
			text := kind.Object(meta, "")
			at := strings.LastIndex(text, `"spec":{`)
			return text[:at] + `"status":{"replicas":"x"},"spec":{` + spec + `}}`
		}
		for was, before := range stored {
			for beside, meta := range metadata {
				if beside != "" && was != "within the bounds" && os.Getenv("MODELBOX_LONG") == "" {
					continue // The one is read whatever the other is.
				}
				old := object(meta, `"image":"a:1"`+before)
				for name, spec := range wrong {
					rest := before
					if strings.Contains(spec, "podTemplate") {
						rest = ""
					}
					for at, answer := range answers(t, mux, kind, object(meta, spec+rest), old) {
						judged++
						if answer.Allowed {
							t.Errorf("%s, %s stored, %s in metadata, webhook %d: %s is admitted", kind.Name, was, beside, at, name)
						}
					}
				}
				corrected := answers(t, mux, kind, object(meta, `"image":"b:1"`), old)
				if !corrected[0].Allowed || !corrected[1].Allowed {
					t.Errorf("%s, %s stored, %s in metadata: a correction is refused: %v %v", kind.Name, was, beside, corrected[0].Result, corrected[1].Result)
				}
				if kind.Name != "App" && len(corrected[0].Patch) == 0 {
					t.Errorf("%s, %s stored, %s in metadata: no defaults", kind.Name, was, beside)
				}
				for at, answer := range answers(t, mux, kind, old, old) {
					if !answer.Allowed && was != "within the bounds" && beside == "" {
						t.Errorf("%s, webhook %d: %s may not stay as it is stored: %v", kind.Name, at, was, answer.Result)
					}
				}
			}
		}
	}
	t.Log(fmt.Sprint(judged, " answers"))
}
