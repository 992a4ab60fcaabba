// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/kinds/quantity"
	"github.com/modelbox-operator/modelbox-operator/test/filled"
)

// FuzzDecodersAgree decodes text with the decoder of this package, with the API server's
// (sigs.k8s.io/json) and with encoding/json. If two of them read one text differently, a
// request could be admitted as one object and stored as another. The text is data itself,
// and an object of the kind in which data replaces one value, so that the mutations of the
// fuzzer reach every field.
func FuzzDecodersAgree(f *testing.F) {
	for kind := range decoded {
		for place := range len(decoded[kind].places) {
			f.Add(byte(kind), uint16(place), []byte(hostileValues[place%len(hostileValues)]))
		}
		for i, value := range hostileValues {
			f.Add(byte(kind), uint16(i), []byte(value))
		}
		f.Add(byte(kind), uint16(0), []byte(decoded[kind].text))
	}
	f.Fuzz(func(t *testing.T, kind byte, place uint16, data []byte) {
		k := decoded[int(kind)%len(decoded)]
		k.agree(t, data)
		k.agree(t, k.replace(int(place), data))
	})
}

// TestDecodersAgree replaces every value of an object of each kind by each hostile
// value.
func TestDecodersAgree(t *testing.T) {
	t.Parallel()
	for _, k := range decoded {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			for _, value := range hostileValues {
				k.agree(t, []byte(value))
				for place := range k.places {
					k.agree(t, k.replace(place, []byte(value)))
				}
			}
		})
	}
}

// TestDecodersAgreeOnDepth: the limit of nested values is the same, 10,000, so that one
// decoder does not accept what the other refuses.
func TestDecodersAgreeOnDepth(t *testing.T) {
	t.Parallel()
	for _, k := range decoded {
		for _, levels := range []int{9_997, 9_998, 9_999, 10_000, 10_001} {
			list := strings.Repeat("[", levels) + strings.Repeat("]", levels)
			object := strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
			for _, value := range []string{list, object} {
				k.agree(t, []byte(value))
				k.agree(t, []byte(`{"unknown":`+value+`}`))
				k.agree(t, []byte(`{"spec":{"podTemplate":`+value+`}}`))
				k.agree(t, []byte(`{"request":{"object":`+value+`}}`))
			}
		}
	}
}

// hostileValues are values that decoders are known to differ on.
var hostileValues = []string{
	`null`, `true`, `0`, `-0`, `-0.0`, `1.0`, `1e0`, `1E+2`, `1e400`, `-1e-400`, `0.1`, `01`, `+1`, `.5`, `1.`, `0x10`, `NaN`, `Infinity`,
	`2147483647`, `2147483648`, `-2147483649`, `9007199254740993`, `9223372036854775807`, `9223372036854775808`, `18446744073709551616`,
	strings.Repeat("9", 400), `"9223372036854775808"`, `"1e3"`, `"1"`, `"-0"`, `"12Mi"`, `" 1 "`, `"0.5"`, `"1e99"`,
	`""`, `"\ud800"`, `"\udc00\ud800"`, `"\ud83d\ude00"`, `"\u0000"`, "\"\x00\"", "\"\xff\"", "\"\xed\xa0\x80\"", "\"\xef\xbb\xbf\"", "\xef\xbb\xbf{}",
	`"\/"`, `"\x41"`, `"\u00zz"`, "\"a\tb\"", `"<>&\u2028"`, "'a'", `"a`, `"QQ=="`, `"QR=="`, `"QQ"`, `"Q\nQ=="`, `"!!"`, `"_-8="`,
	`"2026-01-01T00:00:00Z"`, `"2026-01-01T00:00:00.5+14:00"`, `"2026-01-01t00:00:00z"`, `"2026-13-01T00:00:00Z"`, `"10000-01-01T00:00:00Z"`,
	`[]`, `[null]`, `[1]`, `["a"]`, `[[]]`, `[{}]`, `[null,{},null]`, `[{"name":"a"},{"name":"a"}]`, `[1,]`, `[,1]`, `[`, `]`,
	`{}`, `{"":1}`, `{"a":"b"}`, `{"a":1}`, `{"a":null}`, `{"a":1,"a":2}`, `{"a":{},"\u0061":{}}`, `{"name":"a","name":"b"}`, `{"NAME":"a"}`,
	`{"name":"a","Name":"b"}`, `{"na\u006de":"a"}`, `{"\u017fpec":{}}`, `{"spec":{},"\u017fpec":{"image":"a"}}`, `{"\u212aind":"a"}`,
	`{"name":"a","nam\ud800":1}`, "{\"name\xff\":1}", `{"a":1,}`, `{a:1}`, `{"a"}`, `{"a":1 "b":2}`, `{`, `}`, `// a`, `/* a */1`, "\f1", "1 \v", ` {} `,
	`{} {}`, `1,"image":"b"`, `{},"metadata":{"name":"b"}`, `1}`, `1,"x":{"y":[1`, ``, ` `, "\x00",
}

// decodableText is a type that requests are decoded into.
type decodableText struct {
	name string
	// text is a document with a value in every field, and places are the beginning and the
	// end of each value in it.
	text   string
	places [][2]int
	decode func([]byte) (any, error)
	fresh  func() any
}

var decoded = []*decodableText{
	object[modelv1.ModelBox]("ModelBox"),
	object[appv1.App]("App"),
	object[mydomainv1beta1.Genericdaemon]("Genericdaemon"),
	object[extensionv1.UnitedDeployment]("UnitedDeployment"),
	object[mtsrev1.Eru]("Eru"),
}

// object returns the decoding of a kind's objects.
func object[T any](name string) *decodableText {
	var filling T
	filled.Filler(1).NilChance(0).NumElements(1, 1).Fill(&filling)
	return newDecodable(name, filling, func() any { return new(T) }, func(text []byte) (any, error) { return decode[T](text) })
}

func newDecodable(name string, filling any, fresh func() any, decode func([]byte) (any, error)) *decodableText {
	k := &decodableText{name: name, decode: decode, fresh: fresh}
	var tree any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(marshal(filling)), &tree); err != nil {
		panic(err)
	}
	var text strings.Builder
	k.write(&text, tree)
	k.text = text.String()
	return k
}

// write encodes a value, and records where each value in it begins and ends.
func (k *decodableText) write(text *strings.Builder, value any) {
	place := len(k.places)
	k.places = append(k.places, [2]int{text.Len(), 0})
	switch value := value.(type) {
	case map[string]any:
		separator := "{"
		for _, name := range slices.Sorted(maps.Keys(value)) {
			text.WriteString(separator + marshal(name) + ":")
			k.write(text, value[name])
			separator = ","
		}
		text.WriteString("}")
	case []any:
		separator := "["
		for _, item := range value {
			text.WriteString(separator)
			k.write(text, item)
			separator = ","
		}
		text.WriteString("]")
	default:
		text.WriteString(marshal(value))
	}
	k.places[place][1] = text.Len()
}

// replace returns the document with other text in place of a value.
func (k *decodableText) replace(place int, by []byte) []byte {
	at := k.places[place%len(k.places)]
	return slices.Concat([]byte(k.text[:at[0]]), by, []byte(k.text[at[1]:]))
}

// agree fails if the decoders return different values for a text, or if only one of them
// accepts it.
func (k *decodableText) agree(t *testing.T, text []byte) {
	t.Helper()
	want := k.fresh()
	if len(quantity.Check(text, reflect.TypeOf(want), nil)) > 0 {
		return // Such a text is decoded by none of them.
	}
	strict, wantErr := kjson.UnmarshalStrict(text, want)
	got, err := k.decode(text)
	if wantErr != nil {
		if err == nil {
			t.Fatalf("%s: the API server's decoder refuses this: %q", k.name, text)
		}
		return
	}
	if err != nil {
		t.Fatalf("%s: only the API server's decoder accepts this: %v: %q", k.name, err, text)
	}
	k.same(t, "the API server's decoder", want, got, text)
	// encoding/json ignores case. Where all names are those of fields, it must agree too.
	if standard := k.fresh(); len(strict) == 0 {
		if err := json.Unmarshal(text, standard); err != nil {
			t.Fatalf("%s: encoding/json: %v: %q", k.name, err, text)
		}
		k.same(t, "encoding/json", standard, got, text)
	}
}

func (k *decodableText) same(t *testing.T, other string, want, got any, text []byte) {
	t.Helper()
	if reflect.DeepEqual(want, got) {
		return
	}
	fields := cmp.Comparer(func(a, b metav1.FieldsV1) bool { return a.GetRawString() == b.GetRawString() })
	if diff := cmp.Diff(want, got, fields); diff != "" {
		t.Fatalf("%s differs from %s (-%s +decode):\n%s\n%q", k.name, other, other, diff, text)
	}
}
