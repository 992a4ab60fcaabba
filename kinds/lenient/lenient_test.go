// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lenient_test

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/lenient"
	"github.com/modelbox-operator/modelbox-operator/test/extremes"
)

type thing struct {
	metav1.ObjectMeta `json:"metadata"`
	inlined           `json:",inline"`

	Number    int32                        `json:"number"`
	Flag      *bool                        `json:"flag"`
	Words     []string                     `json:"words"`
	Labels    map[string]string            `json:"labels"`
	Step      *intstr.IntOrString          `json:"step"`
	Raw       *runtime.RawExtension        `json:"raw"`
	Time      metav1.Time                  `json:"time"`
	Resources *corev1.ResourceRequirements `json:"resources"`
	Inner     []thing                      `json:"inner"`
}

type inlined struct {
	Deep int64 `json:"deep"`
}

func TestStrip(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ data, rest, errs string }{
		"nothing wrong": {
			`{"number":1,"flag":null,"words":["a",null],"deep":2,"step":"5","unknown":[{"a":1.5}],"Number":"x","raw":{"a":[1.5]}}`,
			`{"number":1,"flag":null,"words":["a",null],"deep":2,"step":"5","unknown":[{"a":1.5}],"Number":"x","raw":{"a":[1.5]}}`, ``,
		},
		"whole numbers, however they are written": {
			`{"number":1.0,"deep":1e3,"step":2.0,"resources":{"limits":{"cpu":1.0,"memory":1e3}}}`,
			`{"number":1,"deep":1000,"step":2,"resources":{"limits":{"cpu":1,"memory":1000}}}`, ``,
		},
		"wrong types": {
			`{"number":"1","flag":1,"deep":1.5,"words":"a","labels":["a"],"step":true,"time":5,"inner":{"a":1},"raw":7}`, `{"raw":7}`,
			`deep: Invalid value: 1.5: must be of type int64, not number 1.5
flag: Invalid value: 1: must be of type bool, not number
inner: Invalid value: must be of type []lenient_test.thing, not object
labels: Invalid value: must be of type map[string]string, not array
number: Invalid value: "1": must be of type int32, not string
step: Invalid value: true: must be a string or a whole number: write it in quotes ("true")
time: Invalid value: 5: must be of type string, not number
words: Invalid value: "a": must be of type []string, not string`,
		},
		"at any depth": {
			`{"inner":[{"number":1},7,{"labels":{"a":"b","c":5},"words":[1,"x",{}]}],"metadata":{"name":5,"labels":{"a":true}}}`,
			`{"inner":[{"number":1},null,{"labels":{"a":"b"},"words":[null,"x",null]}],"metadata":{"labels":{}}}`,
			`inner[1]: Invalid value: 7: must be of type lenient_test.thing, not number
inner[2].labels[c]: Invalid value: 5: must be of type string, not number: write it in quotes ("5")
inner[2].words[0]: Invalid value: 1: must be of type string, not number: write it in quotes ("1")
inner[2].words[2]: Invalid value: must be of type string, not object
metadata.labels[a]: Invalid value: true: must be of type string, not bool: write it in quotes ("true")
metadata.name: Invalid value: 5: must be of type string, not number: write it in quotes ("5")`,
		},
		"numbers that are too large": {
			`{"number":3000000000,"step":3000000000,"deep":99999999999999999999}`, `{}`,
			`deep: Invalid value: 1e+20: must be of type int64, not number 100000000000000000000
number: Invalid value: 3000000000: must be of type int32, not number 3000000000
step: Invalid value: 3000000000: must be of type int32, not number 3000000000`,
		},
		"quantities": {
			`{"resources":{"limits":{"a":0.5,"b":true,"c":"much","d":"1e999999999","e":{},"f":1e-7,"g":null,"h":"0.5","i":3,"j":"","hugepages-1e999":1}}}`,
			`{"resources":{"limits":{"g":null,"h":"0.5","i":3}}}`,
			`resources.limits[a]: Invalid value: 0.5: must be a string or a whole number: write it in quotes ("0.5")
resources.limits[b]: Invalid value: true: must be a string or a whole number: write it in quotes ("true")
resources.limits[c]: Invalid value: "much": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
resources.limits[d]: Invalid value: "1e999999999": must have an exponent from -99 to 99
resources.limits[e]: Invalid value: must be a string or a whole number
resources.limits[f]: Invalid value: 1e-07: must be a string or a whole number: write it in quotes ("1e-07")
resources.limits[hugepages-1e999]: Invalid value: "hugepages-1e999": must have an exponent from -99 to 99
resources.limits[j]: Invalid value: "": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rest, errs, err := lenient.Strip([]byte(tc.data), reflect.TypeFor[thing](), nil, true)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree(t, []byte(tc.rest)), tree(t, rest)); diff != "" {
				t.Errorf("rest (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.errs, lines(errs)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if err := kjson.UnmarshalCaseSensitivePreserveInts(rest, &thing{}); err != nil {
				t.Errorf("the rest cannot be decoded: %v", err)
			}
		})
	}
}

// Where the schema does not ask for whole numbers, a quantity may be any number.
func TestStripKeepsFractions(t *testing.T) {
	t.Parallel()
	rest, errs, err := lenient.Strip([]byte(`{"resources":{"limits":{"cpu":0.5}}}`), reflect.TypeFor[thing](), nil, false)
	if err != nil || len(errs) > 0 || string(rest) != `{"resources":{"limits":{"cpu":0.5}}}` {
		t.Errorf("%s, %v, %v", rest, errs, err)
	}
}

func TestStripOfWhatHasNoParts(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`7`: "f: Invalid value: 7: must be of type lenient_test.thing, not number", `[]`: "f: Invalid value: must be of type lenient_test.thing, not array",
		`{`: "unexpected end of JSON input",
	} {
		if rest, errs, err := lenient.Strip([]byte(data), reflect.TypeFor[thing](), field.NewPath("f"), true); err == nil || err.Error() != want || rest != nil || errs != nil {
			t.Errorf("%s: %s, %v, %v, want %s", data, rest, errs, err, want)
		}
	}
}

func TestStripOfMany(t *testing.T) {
	t.Parallel()
	data := `{"words":[` + strings.Repeat("1,", 4999) + `1]}`
	rest, errs, err := lenient.Strip([]byte(data), reflect.TypeFor[thing](), field.NewPath("f"), true)
	if err != nil || len(errs) != 101 || strings.Contains(string(rest), "1") || errs[100].BadValue != 5000 {
		t.Errorf("%d errors, the last is %v (%v)", len(errs), errs[len(errs)-1], err)
	}
}

// TestWhatIsLeftIsDecoded spoils objects at random: what is left of each can be
// decoded, and if nothing was left out, so could the whole.
func TestWhatIsLeftIsDecoded(t *testing.T) {
	t.Parallel()
	const box = `{"metadata":{"name":"a","labels":{"a":"b"}},"spec":{"image":"a:1","replicas":1,"rollingUpdate":"25%","paused":true,` +
		`"resources":{"limits":{"cpu":1,"memory":"1Gi"}},"ports":[{"port":80,"targetPort":"web","appProtocol":"http"},{"port":81}],` +
		`"envs":[{"name":"A","value":"b"},{"name":"B","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"1"}}}],` +
		`"livenessProbe":{"httpGet":{"port":80,"httpHeaders":[{"name":"a","value":"b"}]},"periodSeconds":5}}}`
	const rounds = 500
	spoilt := 0
	for seed := range uint64(rounds) {
		object := tree(t, []byte(box)).(map[string]any)
		extremes.New(seed).Spoil(object, extremes.Nasty())
		data, err := json.Marshal(object)
		if err != nil {
			continue // A value was put into itself.
		}
		rest, errs, err := lenient.Strip(data, reflect.TypeFor[modelv1.ModelBox](), nil, false)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(rest, &modelv1.ModelBox{}); err != nil {
			t.Fatalf("%s is left and cannot be decoded: %v", rest, err)
		}
		if len(errs) > 0 {
			spoilt++ // To decode the whole could be what a quantity makes expensive.
		} else if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &modelv1.ModelBox{}); err != nil {
			t.Fatalf("%s: no error, but: %v", data, err)
		}
	}
	if spoilt < rounds/4 {
		t.Errorf("only %d objects of %d had something to leave out", spoilt, rounds)
	}
}

func TestFractions(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]bool{
		`{"cpu":0.5}`: true, `{"cpu": -0.5 }`: true, `[1.5,2]`: true, `0.5`: true, `{"a":"1.2","b":1e-07}`: true, `{"b":1.5e-07}`: true,
		`{"a":"1.2","b":"nginx:1.7.9","c":"registry:5000/a-b:1.2-rc","d":"10.0.0.1:80"}`: false, `{"some-name":"some-1e-x"}`: false, `{"a":15}`: false,
		`{"a":"1.2.3.4","b":[1,2]}`: false, ``: false, `.`: false,
	} {
		if got := lenient.Fractions([]byte(data)); got != want {
			t.Errorf("%s: %t", data, got)
		}
	}
}

// Every number that is no integer is seen, as encoding/json writes it.
func TestFractionsAreSeen(t *testing.T) {
	t.Parallel()
	for _, number := range []float64{0.5, 1.25, 1e-7, 1.5e-9, -2.5, 12345.678, 1e-300, 5e-324} {
		for _, around := range []string{`{"a":%,"b":1}`, `[%]`, `{"a":[1,%]}`} {
			text, err := json.Marshal(number)
			if err != nil {
				t.Fatal(err)
			}
			if data := strings.Replace(around, "%", string(text), 1); !lenient.Fractions([]byte(data)) {
				t.Errorf("%s: not seen", data)
			}
		}
	}
}

func tree(t *testing.T, data []byte) (tree any) {
	t.Helper()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func lines(errs field.ErrorList) string {
	out := make([]string, len(errs))
	for i, err := range errs {
		out[i] = err.Error()
	}
	return strings.Join(out, "\n")
}

func BenchmarkFractions(b *testing.B) {
	data := []byte(strings.Repeat(`{"image":"registry.example.com/team/server:1.2","name":"some-name","port":`+strconv.Itoa(8080)+`}`, 20))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		lenient.Fractions(data)
	}
}
