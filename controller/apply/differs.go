// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listKeys are the keys by which the lists of our children are merged: the
// listMapKey markers of k8s.io/api for the lists that a Deployment, a DaemonSet
// and a Service hold. A list that is not named here is atomic.
var listKeys = map[string][]string{
	"containers":                {"name"},
	"initContainers":            {"name"},
	"env":                       {"name"},
	"volumes":                   {"name"},
	"volumeMounts":              {"mountPath"},
	"volumeDevices":             {"devicePath"},
	"imagePullSecrets":          {"name"},
	"resourceClaims":            {"name"},
	"claims":                    {"name"},
	"schedulingGates":           {"name"},
	"hostAliases":               {"ip"},
	"topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"},
	"ownerReferences":           {"uid"},
	// A Service's ports have the first key, a container's the second.
	"ports": {"port", "containerPort", "protocol"},
}

// differs names the first field, by its path in JSON, in which live is not as desired
// says, or "" if there is none; both are of one type. What desired does not say, which
// is what its JSON would leave out, is not looked at: it belongs to the cluster or to
// somebody else. Nor are the type, which the cache drops, and status, which is not
// ours to say.
func differs(desired, live client.Object) string {
	want, have := reflect.ValueOf(desired).Elem(), reflect.ValueOf(live).Elem()
	for _, field := range fieldsOf(want.Type()) {
		if field.name == "" || field.name == "status" {
			continue
		}
		if at, same := field.compare(want, have); !same {
			return at
		}
	}
	return ""
}

// compare finds, in a field of two structs, the path of the first difference, from
// the structs on.
func (f *field) compare(want, have reflect.Value) (at string, same bool) {
	want, have = want.Field(f.index), have.Field(f.index)
	if f.silent(want) {
		return "", true
	}
	if f.name == "" { // Its own fields stand beside those around it.
		return structDifference(want, have)
	}
	if want.Kind() == reflect.Slice {
		at, same = listDifference(listKeys[f.name], want, have)
	} else {
		at, same = difference(want, have)
	}
	if same {
		return "", true
	}
	return join(f.name, at), false
}

// difference is the path of the first difference, from the values on: "" for the
// values themselves.
func difference(want, have reflect.Value) (at string, same bool) {
	if equal, ok := scalarsOf(want.Type()); ok {
		return "", equal(want, have)
	}
	switch want.Kind() {
	case reflect.Pointer:
		return pointerDifference(want, have)
	case reflect.Struct:
		return structDifference(want, have)
	case reflect.Map:
		return mapDifference(want, have)
	case reflect.Slice:
		return listDifference(nil, want, have)
	default:
		return "", want.Equal(have)
	}
}

// pointerDifference takes nil for nothing said. Where there is no live struct, that
// is the difference, unless the one that is asked for has nothing in it either.
func pointerDifference(want, have reflect.Value) (string, bool) {
	switch {
	case want.IsNil():
		return "", true
	case !have.IsNil():
		return difference(want.Elem(), have.Elem())
	}
	return "", !says(want.Elem())
}

// says tells whether JSON has anything between the braces of a struct.
func says(value reflect.Value) bool {
	if _, scalar := scalarsOf(value.Type()); scalar || value.Kind() != reflect.Struct {
		return true
	}
	return slices.ContainsFunc(fieldsOf(value.Type()), func(f field) bool {
		inner := value.Field(f.index)
		return !f.silent(inner) && (f.name != "" || says(inner))
	})
}

func structDifference(want, have reflect.Value) (string, bool) {
	for _, field := range fieldsOf(want.Type()) {
		if at, same := field.compare(want, have); !same {
			return at, false
		}
	}
	return "", true
}

func mapDifference(want, have reflect.Value) (string, bool) {
	if have.Len() == 0 {
		return "", want.Len() == 0
	}
	first, found := "", false
	for entry := want.MapRange(); entry.Next(); {
		key := entry.Key().String()
		if found && key > first {
			continue // The first one by name is told of.
		}
		if live := have.MapIndex(entry.Key()); live.IsValid() {
			if _, same := difference(entry.Value(), live); same {
				continue
			}
		}
		first, found = key, true
	}
	return first, !found
}

func listDifference(keys []string, want, have reflect.Value) (string, bool) {
	if keys == nil && want.Len() != have.Len() {
		return "", false
	}
	for i := range want.Len() {
		item := want.Index(i)
		other, found := counterpart(keys, i, item, have)
		if !found {
			return place(keys, i, item), false
		}
		if at, same := difference(item, other); !same {
			return join(place(keys, i, item), at), false
		}
	}
	return "", true
}

// counterpart finds the item of a list that an item is to be compared with: the
// one of equal keys, or in an atomic list the one in the same place. A key that
// the item leaves out, such as a container port's protocol, has a default on the
// server and matches any.
func counterpart(keys []string, i int, item, list reflect.Value) (reflect.Value, bool) {
	if keys == nil {
		return list.Index(i), true
	}
	// Where nobody has put something in between, it is in the same place.
	if i < list.Len() && matches(keys, item, list.Index(i)) {
		return list.Index(i), true
	}
	for i := range list.Len() {
		if matches(keys, item, list.Index(i)) {
			return list.Index(i), true
		}
	}
	return reflect.Value{}, false
}

func matches(keys []string, item, other reflect.Value) bool {
	for _, f := range fieldsOf(item.Type()) {
		if !slices.Contains(keys, f.name) {
			continue
		}
		if _, same := f.compare(item, other); !same {
			return false
		}
	}
	return true
}

// place is how a path names an item of a list: by its keys, or by its number.
func place(keys []string, i int, item reflect.Value) string {
	if keys == nil {
		return fmt.Sprintf("[%d]", i)
	}
	var parts []string
	for _, key := range keys {
		for _, f := range fieldsOf(item.Type()) {
			if value := item.Field(f.index); f.name == key && !f.silent(value) {
				parts = append(parts, fmt.Sprintf("%s=%v", key, value))
			}
		}
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func join(path, rest string) string {
	if rest == "" || rest[0] == '[' {
		return path + rest
	}
	return path + "." + rest
}

// scalarsOf are the structs that JSON writes as one value, and how two of them are
// compared.
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

// kindOf is the object's kind, from its Go type: objects read from a cache do not
// carry it.
func kindOf(obj client.Object) string {
	return reflect.TypeOf(obj).Elem().Name()
}
