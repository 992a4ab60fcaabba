// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A difference is a field of live that does not have its desired value.
type difference struct {
	// field is the path as kubectl explain writes it, with list items by their keys:
	// spec.template.spec.containers[name=main].image.
	field string
	// want and have are the two values; one that is unset is invalid.
	want, have reflect.Value
	// operation is that of a JSON patch of live which sets the field. If it replaces a list in
	// which other field managers have items, list is the path of that list.
	operation operation
	list      string
}

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// comparison compares the desired and the live state of an object, field by field.
//
// A field that is unset in desired, which is one that its JSON omits, is not compared: it
// belongs to the API server or to another field manager. It is compared in atomic fields,
// which server-side apply replaces, and in unions, of which only one member may be set.
type comparison struct {
	// all collects every difference; otherwise the comparison ends with the first one, and
	// only counts it.
	all   bool
	path  []step
	found []difference
	count int
}

// step is one element of a path, in the words of difference.field and of a JSON pointer.
type step struct {
	field, pointer string
	isItem         bool
}

// same reports whether every field of desired has its value in live, which is of the same
// type. The comparison itself allocates nothing.
func same(desired, live client.Object) bool {
	c := comparison{}
	c.objects(desired, live)
	return c.count == 0
}

// differences returns the fields of live that do not have their desired value.
func differences(desired, live client.Object) []difference {
	c := comparison{all: true}
	c.objects(desired, live)
	return c.found
}

// objects compares two objects without TypeMeta, which objects in the cache do not have, and
// without status, which other controllers write.
func (c *comparison) objects(desired, live client.Object) {
	want, have := reflect.ValueOf(desired).Elem(), reflect.ValueOf(live).Elem()
	fields := fieldsOf(want.Type())
	for i := range fields {
		if name := fields[i].name; name != "" && name != "status" && !c.done() {
			c.field(&fields[i], want, have, false)
		}
	}
}

func (c *comparison) done() bool { return !c.all && c.count > 0 }

// enter appends the name of a field or the key of a map to the path.
func (c *comparison) enter(name string) {
	if c.all {
		c.path = append(c.path, step{field: name, pointer: name})
	}
}

func (c *comparison) leave() {
	if c.all {
		c.path = c.path[:len(c.path)-1]
	}
}

// differ records a difference of the current field, which a patch sets or removes.
func (c *comparison) differ(want, have reflect.Value) {
	c.count++
	if !c.all {
		return
	}
	set := operation{Op: "remove", Path: c.pointer(len(c.path))}
	switch {
	case want.IsValid() && c.path[len(c.path)-1].isItem:
		set.Op, set.Value = "replace", want.Interface() // To add an item would insert it.
	case want.IsValid():
		set.Op, set.Value = "add", want.Interface()
	}
	c.found = append(c.found, difference{field: c.name(len(c.path)), want: want, have: have, operation: set})
}

// differInList records a difference of the current item of a list, which a patch replaces.
func (c *comparison) differInList(want, have, desired reflect.Value) {
	c.count++
	if c.all {
		replace := operation{Op: "add", Path: c.pointer(len(c.path) - 1), Value: desired.Interface()}
		c.found = append(c.found, difference{field: c.name(len(c.path)), want: want, have: have, operation: replace, list: c.name(len(c.path) - 1)})
	}
}

func (c *comparison) name(length int) string {
	var b strings.Builder
	for i, s := range c.path[:length] {
		if i > 0 && !s.isItem {
			b.WriteByte('.')
		}
		b.WriteString(s.field)
	}
	return b.String()
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

func (c *comparison) pointer(length int) string {
	var b strings.Builder
	for _, s := range c.path[:length] {
		b.WriteString("/" + escapePointer.Replace(s.pointer))
	}
	return b.String()
}

// structs compares two structs. In an atomic value, a field that is unset in desired must be unset in live.
func (c *comparison) structs(want, have reflect.Value, inAtomic bool) {
	fields := fieldsOf(want.Type())
	for i := range fields {
		if !c.done() {
			c.field(&fields[i], want, have, inAtomic)
		}
	}
}

func (c *comparison) field(f *field, parent, live reflect.Value, inAtomic bool) {
	want, have := parent.Field(f.index), live.Field(f.index)
	if f.name == "" { // Its own fields are inlined.
		c.structs(want, have, inAtomic)
		return
	}
	c.enter(f.name)
	defer c.leave()
	switch {
	case f.unset(want):
		if (inAtomic || f.unionMember) && !f.empty(have) && (f.isDefault == nil || !f.isDefault(parent, have)) {
			c.differ(reflect.Value{}, have)
		}
	case inAtomic:
		c.values(want, have, true, f)
	case f.merge == keyed:
		c.items(f.keys, want, have)
	case f.merge == set:
		c.sets(want, have)
	default:
		c.values(want, have, f.merge == atomic, f)
	}
}

// values compares two values of one type. f is their field, nil for the items of a list or
// map.
func (c *comparison) values(want, have reflect.Value, inAtomic bool, f *field) {
	if isScalar(want.Type()) {
		if !equalScalars(want, have) {
			c.differ(want, have)
		}
		return
	}
	switch want.Kind() {
	case reflect.Pointer:
		switch {
		case want.IsNil():
		case !have.IsNil():
			c.values(want.Elem(), have.Elem(), inAtomic, nil)
		case inAtomic || f == nil || !isEmptyStruct(f, want.Elem()):
			c.differ(want, reflect.Value{})
		}
	case reflect.Struct:
		c.structs(want, have, inAtomic)
	case reflect.Map:
		c.maps(want, have, inAtomic)
	case reflect.Slice:
		c.lists(want, have)
	}
}

func (c *comparison) maps(want, have reflect.Value, inAtomic bool) {
	if have.Len() == 0 && want.Len() > 0 {
		c.differ(want, reflect.Value{})
		return
	}
	for entry := want.MapRange(); entry.Next() && !c.done(); {
		key := entry.Key() // Each call copies the key.
		c.enter(key.String())
		if live := have.MapIndex(key); live.IsValid() {
			c.values(entry.Value(), live, inAtomic, nil)
		} else {
			c.differ(entry.Value(), live)
		}
		c.leave()
	}
	if !inAtomic {
		return
	}
	for entry := have.MapRange(); entry.Next() && !c.done(); {
		if !want.MapIndex(entry.Key()).IsValid() {
			c.enter(entry.Key().String())
			c.differ(reflect.Value{}, entry.Value())
			c.leave()
		}
	}
}

// lists compares two atomic lists.
func (c *comparison) lists(want, have reflect.Value) {
	if want.Len() != have.Len() {
		c.differ(want, have)
		return
	}
	for i := 0; i < want.Len() && !c.done(); i++ {
		if c.all {
			c.path = append(c.path, step{fmt.Sprintf("[%d]", i), strconv.Itoa(i), true})
		}
		c.values(want.Index(i), have.Index(i), true, nil)
		c.leave()
	}
}

// sets compares two lists of distinct values, of which each has its own owner.
func (c *comparison) sets(want, have reflect.Value) {
	for _, item := range want.Seq2() {
		found := false
		for _, other := range have.Seq2() {
			found = found || other.Equal(item)
		}
		if !found {
			c.differ(want, have)
			return
		}
	}
}

// items compares two lists whose items are identified by keys. Items of other field managers
// are no difference, but a second item with the keys of a desired one is: of two variables
// with one name, for example, the last one is in effect.
func (c *comparison) items(keys []field, want, have reflect.Value) {
	for i := 0; i < want.Len() && !c.done(); i++ {
		item, at := want.Index(i), counterpart(keys, i, want, have)
		if c.all {
			c.path = append(c.path, step{nameOf(keys, item), strconv.Itoa(at), true})
		}
		if at < 0 {
			c.differInList(item, reflect.Value{}, want)
		} else {
			c.values(item, have.Index(at), false, nil)
			if !c.done() && have.Len() > want.Len() && count(keys, item, have) > count(keys, item, want) {
				c.differInList(reflect.Value{}, have, want)
			}
		}
		c.leave()
	}
}

// counterpart returns the index in a list of the item to compare the desired one with: the
// one with the same keys, or -1. If desired has the same keys more than once, which the API
// server accepts in some lists, the first is compared with the first, and so on.
func counterpart(keys []field, i int, want, list reflect.Value) int {
	item := want.Index(i)
	if want.Len() == list.Len() && matches(keys, item, list.Index(i)) {
		return i // In nearly all cases.
	}
	before := count(keys, item, want.Slice(0, i))
	for at := range list.Len() {
		if !matches(keys, item, list.Index(at)) {
			continue
		}
		if before == 0 {
			return at
		}
		before--
	}
	return -1
}

func count(keys []field, item, list reflect.Value) int {
	n := 0
	for i := range list.Len() {
		if matches(keys, item, list.Index(i)) {
			n++
		}
	}
	return n
}

// matches reports whether two items have the same keys. The protocol of a port is TCP where
// it is unset.
func matches(keys []field, item, other reflect.Value) bool {
	for i := range keys {
		a, b := item.Field(keys[i].index), other.Field(keys[i].index)
		if !a.Equal(b) && (keys[i].name != "protocol" || protocol(a) != protocol(b)) {
			return false
		}
	}
	return true
}

func protocol(value reflect.Value) string {
	if value.Len() == 0 {
		return string(corev1.ProtocolTCP)
	}
	return value.String()
}

// nameOf returns a list item as it is named in a path: [port=80,protocol=TCP].
func nameOf(keys []field, item reflect.Value) string {
	var parts []string
	for i := range keys {
		if value := item.Field(keys[i].index); !keys[i].unset(value) {
			parts = append(parts, fmt.Sprintf("%s=%v", keys[i].name, value))
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// isScalar reports whether a type is a scalar in JSON.
func isScalar(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[metav1.Time]():
		return true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Struct, reflect.Map, reflect.Slice, reflect.Interface:
		return false
	}
	return true
}

// equalScalars reports whether live has a desired value. The API server rounds quantities up to
// thousandths (SetDefaults_ResourceList).
func equalScalars(want, have reflect.Value) bool {
	switch want := want.Interface().(type) {
	case resource.Quantity:
		live := have.Interface().(resource.Quantity)
		if want.Cmp(live) == 0 {
			return true
		}
		rounded := want.DeepCopy()
		rounded.RoundUp(resource.Milli)
		return rounded.Cmp(live) == 0
	case metav1.Time:
		return want.IsZero() || want.Time.Equal(have.Interface().(metav1.Time).Time)
	}
	return want.Equal(have)
}

// isEmptyStruct reports whether the value of a field is a struct in which no field is set,
// such as "securityContext: {}", and which has the same effect as no value. Server-side apply
// removes such a struct from a child together with the last field in it, although it is in
// the apply configuration, so that the child would differ for ever. Empty members of unions
// ("emptyDir: {}") and empty atomic structs ("labelSelector: {}") have an effect.
func isEmptyStruct(f *field, value reflect.Value) bool {
	if value.Kind() != reflect.Struct || isScalar(value.Type()) || f.unionMember || f.merge != granular {
		return false
	}
	fields := fieldsOf(value.Type())
	return !slices.ContainsFunc(fields, func(inner field) bool {
		v := value.Field(inner.index)
		if inner.unset(v) {
			return false
		}
		return !isEmptyStruct(&inner, reflect.Indirect(v))
	})
}

// kindOf returns the object's kind, from its Go type: objects in the cache have no TypeMeta.
func kindOf(obj client.Object) string {
	return reflect.TypeOf(obj).Elem().Name()
}
