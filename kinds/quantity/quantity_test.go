// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package quantity

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestCheckFindsWhatIsExpensive(t *testing.T) {
	t.Parallel()
	limits := func(cpu string) string {
		return `{"spec":{"containers":[{"name":"a"},{"name":"b","resources":{"limits":{"cpu":` + cpu + `}}}]}}`
	}
	long := strings.Repeat("9", 1000)
	const cpu = "spec.containers[1].resources.limits[cpu]"
	for name, test := range map[string]struct {
		data string
		want []string
	}{
		"nothing":                     {`{}`, nil},
		"a quantity":                  {limits(`"1.5Gi"`), nil},
		"the largest exponents":       {limits(`"1e99"`), nil},
		"the smallest":                {limits(`"1e-99"`), nil},
		"zeros before an exponent":    {limits(`"1e0001"`), nil},
		"a positive exponent":         {limits(`"1e999999999"`), []string{cpu}},
		"no exponent at all":          {limits(`"1e100.5"`), nil},
		"a signed one":                {limits(`"-1E+100"`), []string{cpu}},
		"a negative one":              {limits(`"1e-999999999"`), []string{cpu}},
		"one behind a point":          {limits(`".5e123"`), []string{cpu}},
		"one that is not a string":    {limits(`1e400`), []string{cpu}},
		"one with zeros":              {limits(`"1e000000100"`), []string{cpu}},
		"one in spaces":               {limits(`" 1e100 "`), []string{cpu}},
		"one with escapes":            {limits(`"\u0031e\u0031000"`), []string{cpu}},
		"many digits":                 {limits(`"` + long + `"`), []string{cpu}},
		"many digits behind a point":  {limits(`"0.` + long + `"`), []string{cpu}},
		"one that is overwritten":     {`{"spec":{"overhead":{"cpu":"1e999","cpu":"1"}}}`, []string{"spec.overhead[cpu]"}},
		"names in another case":       {`{"Spec":{"OverHead":{"cpu":"1e999"}}}`, []string{"Spec.OverHead[cpu]"}},
		"an environment variable":     {`{"spec":{"containers":[{"env":[{"name":"A","value":"1e999"},{"name":"B","value":"` + long + `"}]}]}}`, nil},
		"a field that is not there":   {`{"spec":{"cpu":"1e999","other":{"cpu":["1e999"]}}}`, nil},
		"a hash":                      {`{"spec":{"containers":[{"image":"a@sha256:7e123456"}]}}`, nil},
		"the size of an empty volume": {`{"spec":{"volumes":[{"emptyDir":{"sizeLimit":"1e999"}}]}}`, []string{"spec.volumes[0].emptyDir.sizeLimit"}},
		"a divisor": {
			`{"spec":{"initContainers":[{"env":[{"valueFrom":{"resourceFieldRef":{"divisor":"1e999"}}}]}]}}`,
			[]string{"spec.initContainers[0].env[0].valueFrom.resourceFieldRef.divisor"},
		},
		"a claim of a volume": {
			`{"spec":{"volumes":[{"ephemeral":{"volumeClaimTemplate":{"spec":{"resources":{"requests":{"storage":"1e999"}}}}}}]}}`,
			[]string{"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]"},
		},
		"the name of a resource": {
			`{"spec":{"overhead":{"hugepages-1e999999999":"1","hugepages-2Mi":"1","a.b/hugepages-1e999":"1"},"nodeSelector":{"hugepages-1e999":"1e999"}}}`,
			[]string{"spec.overhead[hugepages-1e999999999]"},
		},
		"several":                  {`{"spec":{"overhead":{"a":"1e999","b":"1","c":"1e-999"}}}`, []string{"spec.overhead[a]", "spec.overhead[c]"}},
		"another type":             {`{"spec":["1e999",{"cpu":"1e999"}]}`, nil},
		"half an object":           {`{"spec":{"overhead":{"a":"1e999",`, []string{"spec.overhead[a]"}},
		"no JSON":                  {`1e999 "x`, nil},
		"nothing after the digits": {`1e999`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, err := range Check([]byte(test.data), reflect.TypeFor[corev1.PodTemplateSpec](), nil) {
				got = append(got, err.Field)
				if len(err.Error()) > 300 {
					t.Errorf("the error is long: %s", err)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckNamesThePathThatItIsGiven(t *testing.T) {
	t.Parallel()
	errs := Check([]byte(`{"limits":{"cpu":"1e999"}}`), reflect.TypeFor[*corev1.ResourceRequirements](), field.NewPath("spec", "resources"))
	want := `spec.resources.limits[cpu]: Invalid value: "1e999": must have an exponent from -99 to 99`
	if len(errs) != 1 || errs[0].Error() != want {
		t.Errorf("got %v, want %s", errs, want)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{"1": true, "1e99": true, "2Mi": true, "1e100": false, "1e-999999999": false, "x": false, "": false} {
		if _, err := Parse(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestWhatIsOrdinaryIsReadOnce keeps the closer look, which decodes, away from
// ordinary objects.
func TestWhatIsOrdinaryIsReadOnce(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"image":"registry.example.com/a@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}`,
		`{"uid":"6a1e2c55-0000-4000-8000-000000000000","time":"2026-01-02T03:04:05.000006Z","n":1e21,"m":12345678901234567890}`,
		`{"value":"1e2","other":"\u003c\u2028 3e1234x"}`,
	} {
		if suspicious([]byte(text)) {
			t.Errorf("%s gets a closer look", text)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	data := []byte(`{"spec":{"containers":[` + strings.Repeat(`{"name":"main","image":"registry.example.com/team/server:1.2"},`, 50) + `{}]}}`)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		Check(data, reflect.TypeFor[corev1.PodTemplateSpec](), nil)
	}
}
