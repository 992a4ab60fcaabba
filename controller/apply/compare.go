// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A difference is a field of live that does not have its desired value.
type difference struct {
	path path
	// want and have are the two values. have is invalid if the field is unset in live, and
	// want if it is unset in desired, which is a difference in an atomic field, in a union and
	// for an item whose keys live has twice.
	want, have reflect.Value
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
	path  path
	found []difference
	count int
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

func (c *comparison) differ(want, have reflect.Value) {
	c.count++
	if c.all {
		c.found = append(c.found, difference{path: slices.Clone(c.path), want: want, have: have})
	}
}

// enter and leave append a step to the path and remove it.
func (c *comparison) enter(s step) {
	if c.all {
		c.path = append(c.path, s)
	}
}

func (c *comparison) leave() {
	if c.all {
		c.path = c.path[:len(c.path)-1]
	}
}

// structs compares two structs. In an atomic value, a field that is unset in desired must be
// unset in live.
func (c *comparison) structs(want, have reflect.Value, inAtomic bool) {
	fields := fieldsOf(want.Type())
	for i := range fields {
		if c.done() {
			return
		}
		c.field(&fields[i], want, have, inAtomic)
	}
}

func (c *comparison) field(f *field, parent, live reflect.Value, inAtomic bool) {
	want, have := parent.Field(f.index), live.Field(f.index)
	if f.name == "" { // Its own fields are inlined.
		c.structs(want, have, inAtomic)
		return
	}
	if f.unset(want) {
		if (inAtomic || f.unionMember) && !f.empty(have) && !f.hasDefault(parent, have) {
			c.enter(step{name: f.name, inAtomic: inAtomic})
			c.differ(reflect.Value{}, have)
			c.leave()
		}
		return
	}
	c.enter(step{name: f.name, inAtomic: inAtomic})
	if f.merge == keyed && !inAtomic {
		c.items(f.keys, want, have)
	} else {
		c.values(want, have, inAtomic || f.merge == atomic, f)
	}
	c.leave()
}

// empty reports whether a live value is unset; a list or map without items is unset as well.
func (f *field) empty(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Slice, reflect.Map:
		return value.Len() == 0
	case reflect.Struct:
		return value.IsZero()
	}
	return f.unset(value) || value.Kind() != reflect.Pointer && value.IsZero()
}

// hasDefault reports whether a live value is the API server's default.
func (f *field) hasDefault(parent, value reflect.Value) bool {
	return f.isDefault != nil && f.isDefault(parent, value)
}

// values compares two values of one type. f is their field, nil for the items of a list or
// map.
func (c *comparison) values(want, have reflect.Value, inAtomic bool, f *field) {
	if equal, ok := scalarsOf(want.Type()); ok {
		if !equal(want, have) {
			c.differ(want, have)
		}
		return
	}
	switch want.Kind() {
	case reflect.Pointer:
		c.pointers(want, have, inAtomic, f)
	case reflect.Struct:
		c.structs(want, have, inAtomic)
	case reflect.Map:
		c.maps(want, have, inAtomic)
	case reflect.Slice:
		if f != nil && f.merge == set {
			c.sets(want, have)
		} else {
			c.lists(want, have)
		}
	default:
		if !want.Equal(have) {
			c.differ(want, have)
		}
	}
}

// pointers compares two pointers. nil in desired is unset.
func (c *comparison) pointers(want, have reflect.Value, inAtomic bool, f *field) {
	switch {
	case want.IsNil():
	case have.IsNil():
		if inAtomic || f == nil || !isEmptyStruct(f, want.Elem()) {
			c.differ(want, reflect.Value{})
		}
	default:
		c.values(want.Elem(), have.Elem(), inAtomic, nil)
	}
}

func (c *comparison) maps(want, have reflect.Value, inAtomic bool) {
	before := c.count
	for entry := want.MapRange(); entry.Next() && !c.done(); {
		key := entry.Key() // Each call copies the key.
		c.enter(step{name: key.String(), inAtomic: inAtomic})
		if live := have.MapIndex(key); live.IsValid() {
			c.values(entry.Value(), live, inAtomic, nil)
		} else {
			c.differ(entry.Value(), live)
		}
		c.leave()
	}
	if !inAtomic || c.done() || c.count == before && have.Len() == want.Len() {
		return
	}
	for entry := have.MapRange(); entry.Next() && !c.done(); {
		if want.MapIndex(entry.Key()).IsValid() {
			continue
		}
		c.enter(step{name: entry.Key().String(), inAtomic: true})
		c.differ(reflect.Value{}, entry.Value())
		c.leave()
	}
}

// lists compares two atomic lists.
func (c *comparison) lists(want, have reflect.Value) {
	if want.Len() != have.Len() {
		c.differ(want, have)
		return
	}
	for i := range want.Len() {
		if c.done() {
			return
		}
		c.enter(step{index: i, isIndex: true, inAtomic: true})
		c.values(want.Index(i), have.Index(i), true, nil)
		c.leave()
	}
}

func (c *comparison) sets(want, have reflect.Value) {
	for i := range want.Len() {
		if item := want.Index(i); !contains(have, item) {
			c.enter(step{item: item})
			c.differ(item, reflect.Value{})
			c.leave()
		}
	}
}

func contains(list, item reflect.Value) bool {
	for i := range list.Len() {
		if list.Index(i).Equal(item) {
			return true
		}
	}
	return false
}

// items compares two lists whose items are identified by keys. Items of other field managers
// are no difference, but a second item with the keys of a desired one is: of two variables
// with one name, for example, the last one is in effect.
func (c *comparison) items(keys []field, want, have reflect.Value) {
	for i := range want.Len() {
		if c.done() {
			return
		}
		item := want.Index(i)
		c.enter(step{keys: keys, item: item})
		if at := counterpart(keys, i, want, have); at < 0 {
			c.differ(item, reflect.Value{})
		} else {
			c.values(item, have.Index(at), false, nil)
			if !c.done() && have.Len() > want.Len() && count(keys, item, have) > count(keys, item, want) {
				c.differ(reflect.Value{}, have)
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
		if a.Equal(b) {
			continue
		}
		if keys[i].name != "protocol" || protocol(a) != protocol(b) {
			return false
		}
	}
	return true
}

func protocol(value reflect.Value) string {
	if value.Len() == 0 {
		return "TCP"
	}
	return value.String()
}

// scalarsOf returns a function that compares two values of a struct type which is a scalar in
// JSON, and reports whether t is such a type.
func scalarsOf(t reflect.Type) (equal func(want, have reflect.Value) bool, ok bool) {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return func(want, have reflect.Value) bool {
			q := want.Interface().(resource.Quantity)
			return q.Cmp(have.Interface().(resource.Quantity)) == 0
		}, true
	case reflect.TypeFor[intstr.IntOrString]():
		return reflect.Value.Equal, true
	case reflect.TypeFor[metav1.Time]():
		return func(want, have reflect.Value) bool {
			at := want.Interface().(metav1.Time)
			return at.IsZero() || at.Time.Equal(have.Interface().(metav1.Time).Time)
		}, true
	}
	return nil, false
}

// kindOf returns the object's kind, from its Go type: objects in the cache have no TypeMeta.
func kindOf(obj client.Object) string {
	return reflect.TypeOf(obj).Elem().Name()
}
