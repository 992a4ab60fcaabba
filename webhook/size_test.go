// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/test/hostile"
)

var _ = Describe("the size of a spec", func() {
	var box *modelv1.ModelBox
	BeforeEach(func() {
		box = &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(), Name: "box"}, Spec: modelv1.ModelBoxSpec{Image: "a:1"}}
	})
	variables := func(n int) (list []corev1.EnvVar) {
		for i := range n {
			list = append(list, corev1.EnvVar{Name: fmt.Sprint("V", i), Value: strings.Repeat("x", 50<<10)})
		}
		return list
	}
	tooLong := And(ContainSubstring("spec: Too long: has "), ContainSubstring("bytes; at most 131072 are allowed"),
		ContainSubstring("ConfigMap"), ContainSubstring("envFrom"))

	It("may stay as it is if it was stored before there was a bound", func(ctx context.Context) {
		box.Spec.Envs = variables(4)
		withoutWebhooks(ctx, func() error { return env.Client.Create(ctx, box) })
		box.Labels = map[string]string{"a": "b"}
		Expect(env.Client.Update(ctx, box)).To(Succeed())
		box.Spec.Envs = variables(3)
		Expect(env.Client.Update(ctx, box)).To(MatchError(tooLong), "a change is within the bounds, or refused")
		box.Spec.Envs = variables(2)
		Expect(env.Client.Update(ctx, box)).To(Succeed())
		Expect(box.Spec.ResourceType).To(Equal(modelv1.ResourceTypeSmall), "the defaults are set all the same")
	})

	It("is bounded while the object is being deleted, and its finalizers can be removed", func(ctx context.Context) {
		box.Finalizers = []string{"example.com/hold"}
		Expect(env.Client.Create(ctx, box)).To(Succeed())
		Expect(env.Client.Delete(ctx, box)).To(Succeed())
		merge := func(patch string) error {
			return env.Client.Patch(ctx, box.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
		}
		for _, depth := range []int{1000, 9994} {
			deep := strings.Repeat(`{"a":`, depth) + "{}" + strings.Repeat("}", depth)
			Expect(merge(`{"spec":{"podTemplate":`+deep+`}}`)).NotTo(Succeed(), "%d levels", depth)
		}
		Expect(merge(`{"spec":{"podTemplate":{"metadata":{"annotations":{"a":"` + strings.Repeat("x", 128<<10) + `"}}}}}`)).To(MatchError(tooLong))
		Expect(merge(`{"spec":{"image":"Not An Image"}}`)).To(Succeed(), "the other rules do not matter any more")
		Expect(env.Client.List(ctx, &modelv1.ModelBoxList{}, client.InNamespace(box.Namespace))).To(Succeed())
		Expect(merge(`{"metadata":{"finalizers":null}}`)).To(Succeed())
		Expect(apierrors.IsNotFound(env.Client.Get(ctx, client.ObjectKeyFromObject(box), box))).To(BeTrue())
	})
})

// answers returns the responses of both webhooks of a kind.
func answers(t *testing.T, mux http.Handler, kind *hostile.Kind, object, old string) (out []*admissionv1.AdmissionResponse) {
	t.Helper()
	for _, path := range kind.Paths() {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(kind.Review(object, old)))
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, req)
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(w.Body.Bytes(), &review); err != nil || review.Response == nil {
			t.Fatalf("%d: %.300s", w.Code, w.Body)
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
		"wrong fields":      `,"managedFields":[{"manager":7,"time":"no time"}],"labels":7,"deletionGracePeriodSeconds":1e300`,
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
