// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

func at(minute int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC))
}

func TestSetKeepsOnlyWhatIsTrue(t *testing.T) {
	var conditions []metav1.Condition
	NewReconciling("Progressing", "1 of 2").SetConditions(&conditions, 1, at(0))
	NewReconciling("Progressing", "2 of 2").SetConditions(&conditions, 2, at(1))
	want := []metav1.Condition{
		{Type: ConditionReady, Status: "False", Reason: "Progressing", Message: "2 of 2", ObservedGeneration: 2, LastTransitionTime: at(0)},
		{Type: ConditionReconciling, Status: "True", Reason: "Progressing", Message: "2 of 2", ObservedGeneration: 2, LastTransitionTime: at(0)},
	}
	if diff := cmp.Diff(want, conditions); diff != "" {
		t.Errorf("reconciling (-want +got):\n%s", diff)
	}

	NewStalled("Broken", "mend it").SetConditions(&conditions, 2, at(2))
	want = []metav1.Condition{
		{Type: ConditionReady, Status: "False", Reason: "Broken", Message: "mend it", ObservedGeneration: 2, LastTransitionTime: at(0)},
		{Type: ConditionStalled, Status: "True", Reason: "Broken", Message: "mend it", ObservedGeneration: 2, LastTransitionTime: at(2)},
	}
	if diff := cmp.Diff(want, conditions); diff != "" {
		t.Errorf("stalled (-want +got):\n%s", diff)
	}

	NewReady("all there").SetConditions(&conditions, 3, at(3))
	want = []metav1.Condition{
		{Type: ConditionReady, Status: "True", Reason: "Ready", Message: "all there", ObservedGeneration: 3, LastTransitionTime: at(3)},
	}
	if diff := cmp.Diff(want, conditions); diff != "" {
		t.Errorf("ready (-want +got):\n%s", diff)
	}
}

func TestSetPaused(t *testing.T) {
	var conditions []metav1.Condition
	SetPaused(&conditions, true, 4, at(0))
	if len(conditions) != 1 || conditions[0].Type != ConditionPaused || conditions[0].Status != metav1.ConditionTrue || conditions[0].ObservedGeneration != 4 {
		t.Errorf("paused: %+v", conditions)
	}
	SetPaused(&conditions, false, 5, at(1))
	if len(conditions) != 0 {
		t.Errorf("not paused: %+v", conditions)
	}
}

func TestAMessageIsNeverLongerThanAConditionTakes(t *testing.T) {
	var conditions []metav1.Condition
	for _, character := range []string{"a", "箱"} {
		NewStalled(ReasonChildRefused, strings.Repeat(character, 100_000)).SetConditions(&conditions, 1, at(0))
		for _, condition := range conditions {
			if n := utf8.RuneCountInString(condition.Message); n > maxMessage || n < maxMessage/4 {
				t.Errorf("the message of %s has %d characters, want at most %d and not much less", condition.Type, n, maxMessage)
			}
		}
	}
}

func TestSetAvailable(t *testing.T) {
	then, now := metav1.NewTime(time.Unix(1e9, 0)), metav1.NewTime(time.Unix(2e9, 0))
	was := metav1.Condition{
		Type: ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 3, LastTransitionTime: then, Reason: "Yes", Message: "yes",
	}
	for _, test := range []struct {
		name    string
		before  []metav1.Condition
		set     metav1.Condition
		current bool
		want    metav1.Condition
	}{
		{"the first, of the current generation", nil, metav1.Condition{Status: metav1.ConditionTrue, Reason: "Yes", Message: "yes", LastTransitionTime: then}, true,
			metav1.Condition{Type: ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 4, LastTransitionTime: then, Reason: "Yes", Message: "yes"}},
		{"the first, of an older generation", nil, metav1.Condition{Status: metav1.ConditionTrue, Reason: "Yes", Message: "yes"}, false,
			metav1.Condition{Type: ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 3, LastTransitionTime: now, Reason: "Yes", Message: "yes"}},
		{"unchanged, of the current generation", []metav1.Condition{was}, metav1.Condition{Status: metav1.ConditionTrue, Reason: "Yes", Message: "yes"}, true,
			metav1.Condition{Type: ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 4, LastTransitionTime: then, Reason: "Yes", Message: "yes"}},
		{"unchanged, and the child is not written yet", []metav1.Condition{was}, metav1.Condition{Status: metav1.ConditionTrue, Reason: "Yes", Message: "yes"}, false, was},
		{"changed, and the child is not written yet", []metav1.Condition{was}, metav1.Condition{Status: metav1.ConditionFalse, Reason: "No", Message: "no"}, false,
			metav1.Condition{Type: ConditionAvailable, Status: metav1.ConditionFalse, ObservedGeneration: 3, LastTransitionTime: now, Reason: "No", Message: "no"}},
		{"a time that JSON does not have", nil, metav1.Condition{Status: metav1.ConditionTrue, Reason: "Yes", Message: "yes", LastTransitionTime: metav1.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -3600))}, true,
			metav1.Condition{Type: ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 4, LastTransitionTime: metav1.NewTime(latest), Reason: "Yes", Message: "yes"}},
		{"a reason that no condition may have", nil, metav1.Condition{Status: metav1.ConditionFalse, Reason: "not one word", Message: "no"}, true,
			metav1.Condition{Type: ConditionAvailable, Status: metav1.ConditionFalse, ObservedGeneration: 4, LastTransitionTime: now, Reason: "Unknown", Message: "no"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			conditions := test.before
			SetAvailable(&conditions, test.set, test.current, 4, now)
			if len(conditions) != 1 || conditions[0] != test.want {
				t.Errorf("conditions are %+v, want %+v", conditions, test.want)
			}
		})
	}
}

// schemaOfStatus returns the validator of the status of a kind.
func schemaOfStatus(t *testing.T, crd string) validation.SchemaValidator {
	t.Helper()
	data, err := os.ReadFile("../../config/crd/bases/" + crd + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var in apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &in); err != nil {
		t.Fatal(err)
	}
	property, out := in.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"], apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&property, &out, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&out)
	if err != nil {
		t.Fatal(err)
	}
	return validator
}

// hostile fills a status with what other clients can write into the objects from which it is
// copied, and into the stored status itself. What only the operator decides is valid.
func hostile(seed int64) *randfill.Filler {
	texts := []string{"", "Reason", "not one word", strings.Repeat("a", 100_000), strings.Repeat("箱", 50_000), "\x00\n", "1", "A_"}
	numbers := []int64{0, 1, -1, math.MaxInt32, math.MinInt32}
	zone := func(hours int) *time.Location { return time.FixedZone("", hours*3600) }
	times := []time.Time{
		{}, time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(1, 1, 2, 0, 0, 0, 0, zone(23)), time.Date(0, 6, 1, 0, 0, 0, 0, time.UTC), time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 0, zone(-1)), time.Date(9999, 12, 31, 23, 59, 59, 999, time.UTC), time.Date(292277026596, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 1, 2, 3, 4, 5, 6, zone(8)), time.Unix(0, 0), time.Unix(-1, 0),
	}
	condition := 0
	return randfill.NewWithSeed(seed).NilChance(0.2).NumElements(0, 130).Funcs(
		func(s *string, c randfill.Continue) { *s = texts[c.Intn(len(texts))] },
		func(n *int32, c randfill.Continue) { *n = int32(numbers[c.Intn(len(numbers))]) },
		func(n *int64, c randfill.Continue) { *n = numbers[c.Intn(len(numbers))] },
		func(m *metav1.Time, c randfill.Continue) { *m = metav1.NewTime(times[c.Intn(len(times))]) },
		func(l *[]metav1.Condition, c randfill.Continue) {
			*l = make([]metav1.Condition, c.Intn(40))
			for i := range *l {
				c.FillNoCustom(&(*l)[i])
				if condition++; i%8 == 0 && i/8 < len(ownConditions) {
					(*l)[i].Type = ownConditions[i/8]
				} else {
					(*l)[i].Type = fmt.Sprintf("Foreign%d", condition)
				}
			}
		},
		func(p *mtsrev1.EruPhase, _ randfill.Continue) { *p = mtsrev1.EruRunning },
		func(r *mtsrev1.EruResult, c randfill.Continue) {
			*r = []mtsrev1.EruResult{mtsrev1.EruRestarted, mtsrev1.EruSkipped, mtsrev1.EruResultFailed, "", "Another"}[c.Intn(5)]
		},
		func(s *modelv1.WorkloadStatus, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Selector, s.Address, s.URL = "a=b", "web.team.svc:80", "https://a.example.com/v1"
		},
		func(s *extensionv1.UnitedDeploymentStatus, c randfill.Continue) {
			c.FillNoCustom(s)
			s.Selector = "a=b"
		},
		func(f **modelv1.FetcherStatus, _ randfill.Continue) {
			*f = &modelv1.FetcherStatus{TemplateHash: "0", Image: "a:1", Mirrors: []string{"hf://=https://a"}}
		},
		func(m *modelv1.ModelStatus, _ randfill.Continue) {
			*m = modelv1.ModelStatus{URI: "https://a/b", Bytes: 1}
		},
		func(m *[]modelv1.NamedModelStatus, _ randfill.Continue) {
			*m = []modelv1.NamedModelStatus{{Name: "draft"}}
		},
	)
}

// Whatever is copied into a status, its schema accepts it, it is decoded as it was encoded, and
// what the operator says of the object itself is in it.
func TestAnyStatusCanBeWritten(t *testing.T) {
	t.Parallel()
	for _, kind := range all.Kinds {
		resource := testenv.Resource(kind.GVK)
		crd, object := resource.Group+"_"+resource.Resource, kind.New()
		t.Run(crd, func(t *testing.T) {
			t.Parallel()
			validator := schemaOfStatus(t, crd)
			for seed := range int64(60) {
				obj := object.DeepCopyObject().(Object)
				hostile(seed).Fill(obj.GetStatus())
				own := 0
				for _, c := range obj.GetConditions() {
					own += strings.Count(strings.Join(ownConditions, " ")+" ", c.Type+" ")
				}
				data, err := encode(obj)
				if err != nil {
					t.Fatal(err)
				}
				var tree any
				if err := json.Unmarshal(data, &tree); err != nil {
					t.Fatal(err)
				}
				if errs := validation.ValidateCustomResource(nil, tree, validator); len(errs) > 0 {
					t.Fatalf("seed %d: %.2000s", seed, errs.ToAggregate())
				}
				for _, c := range obj.GetConditions() {
					own -= strings.Count(strings.Join(ownConditions, " ")+" ", c.Type+" ")
				}
				if own != 0 {
					t.Errorf("seed %d: %d of the operator's own conditions are lost", seed, own)
				}
				stored := reflect.New(reflect.TypeOf(object).Elem()).Interface().(Object)
				if err := json.Unmarshal(data, stored.GetStatus()); err != nil {
					t.Fatal(err)
				}
				if again, err := encode(stored); err != nil || !bytes.Equal(again, data) {
					t.Fatalf("seed %d: another status is written each time, %v", seed, err)
				}
			}
		})
	}
}
