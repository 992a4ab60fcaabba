// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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

// path is the path of a field as in difference.field, and as a JSON pointer.
type path struct {
	field, pointer string
	// isItem is true for an item of a list.
	isItem bool
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// member returns the path of a member of a struct or map.
func (p path) member(name string) path {
	return path{strings.TrimPrefix(p.field+"."+name, "."), p.pointer + "/" + escapePointer.Replace(name), false}
}

// item returns the path of an item of a list, which has a key as keyOf returns it, or [0].
func (p path) item(key string, index int) path {
	return path{p.field + key, p.pointer + "/" + strconv.Itoa(index), true}
}

// comparison compares the desired and the live state of an object, field by field.
//
// A field that is unset in desired, which is one that its JSON omits, is not compared: it
// belongs to the API server or to another field manager. It is compared in atomic fields,
// which server-side apply replaces, and in unions, of which only one member may be set.
type comparison struct{ found []difference }

// differences returns the fields of live that do not have their desired value, in the order of their
// names: a map has none, and a status with some of them must not change from one reconcile to the next. The two
// objects are compared without TypeMeta, which objects in the cache do not have, and without status, which
// other controllers write.
func differences(desired, live client.Object) []difference {
	c := comparison{}
	if want, ok := desired.(*unstructured.Unstructured); ok {
		c.unstructured(want, live.(*unstructured.Unstructured))
	} else {
		want, have := reflect.ValueOf(desired).Elem(), reflect.ValueOf(live).Elem()
		for _, f := range fieldsOf(want.Type()) {
			if f.name != "" && f.name != "status" {
				c.field(path{}, &f, want, have, false)
			}
		}
	}
	slices.SortStableFunc(c.found, func(a, b difference) int { return cmp.Compare(a.field, b.field) })
	return c.found
}

// unstructured compares two objects of a kind that has no Go type here, one of a CRD, but metadata,
// whose type has the keys of its lists.
func (c *comparison) unstructured(desired, live *unstructured.Unstructured) {
	c.structs(path{}.member("metadata"), metadataOf(desired), metadataOf(live), false)
	rest := maps.Clone(desired.Object)
	maps.DeleteFunc(rest, func(key string, _ any) bool {
		return slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, key)
	})
	c.maps(path{}, reflect.ValueOf(rest), reflect.ValueOf(live.Object), false)
}

func metadataOf(obj *unstructured.Unstructured) reflect.Value {
	out := metav1.ObjectMeta{}
	in, _ := obj.Object["metadata"].(map[string]any)
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(in, &out) // What cannot be decoded differs.
	return reflect.ValueOf(out)
}

// differ records a difference, which a patch sets or removes.
func (c *comparison) differ(at path, want, have reflect.Value) {
	set := operation{Op: "remove", Path: at.pointer}
	switch {
	case want.IsValid() && at.isItem:
		set.Op, set.Value = "replace", want.Interface() // To add an item would insert it.
	case want.IsValid():
		set.Op, set.Value = "add", want.Interface()
	}
	c.found = append(c.found, difference{field: at.field, want: want, have: have, operation: set})
}

// structs compares two structs. In an atomic value, a field that is unset in desired must be unset in live.
func (c *comparison) structs(at path, want, have reflect.Value, inAtomic bool) {
	fields := fieldsOf(want.Type())
	for i := range fields {
		c.field(at, &fields[i], want, have, inAtomic)
	}
}

// field compares a field of two structs.
func (c *comparison) field(at path, f *field, parent, live reflect.Value, inAtomic bool) {
	want, have := parent.Field(f.index), live.Field(f.index)
	switch {
	case f.name == "": // Its own fields are inlined.
		c.structs(at, want, have, inAtomic)
	case f.unset(want):
		if (inAtomic || f.unionMember) && !empty(have) && (f.isDefault == nil || !f.isDefault(parent, have)) {
			c.differ(at.member(f.name), reflect.Value{}, have)
		}
	case inAtomic:
		c.values(at.member(f.name), want, have, true, f)
	case f.merge == keyed:
		c.items(at.member(f.name), f.keys, want, have)
	case f.merge == set:
		c.sets(at.member(f.name), want, have)
	default:
		c.values(at.member(f.name), want, have, f.merge == atomic, f)
	}
}

// values compares two values of one type. f is their field, nil for the items of a list or
// map.
func (c *comparison) values(at path, want, have reflect.Value, inAtomic bool, f *field) {
	if isScalar(want.Type()) {
		if !equalScalars(want, have) {
			c.differ(at, want, have)
		}
		return
	}
	switch want.Kind() {
	case reflect.Pointer:
		switch {
		case !have.IsNil():
			c.values(at, want.Elem(), have.Elem(), inAtomic, nil)
		case inAtomic || f == nil || !isEmptyStruct(f, want.Elem()):
			c.differ(at, want, reflect.Value{})
		}
	case reflect.Struct:
		c.structs(at, want, have, inAtomic)
	case reflect.Map:
		c.maps(at, want, have, inAtomic)
	case reflect.Slice:
		c.lists(at, want, have)
	case reflect.Interface:
		c.json(at, want, have)
	}
}

func (c *comparison) maps(at path, want, have reflect.Value, inAtomic bool) {
	if have.Len() == 0 && want.Len() > 0 {
		c.differ(at, want, reflect.Value{})
		return
	}
	for key, value := range want.Seq2() {
		if live := have.MapIndex(key); live.IsValid() {
			c.values(at.member(key.String()), value, live, inAtomic, nil)
		} else {
			c.differ(at.member(key.String()), value, live)
		}
	}
	for key, value := range have.Seq2() {
		if inAtomic && !want.MapIndex(key).IsValid() {
			c.differ(at.member(key.String()), reflect.Value{}, value)
		}
	}
}

// json compares two values of an object that has no Go type here. A map is granular and a list
// atomic, as server-side apply merges them where a CRD has no other markers. So the desired state must contain the
// defaults of the items of its lists. 1 is the same in each type of a number.
func (c *comparison) json(at path, want, have reflect.Value) {
	if want.Elem().Kind() == reflect.Map && have.Elem().Kind() == reflect.Map {
		c.maps(at, want.Elem(), have.Elem(), false)
		return
	}
	desired, err := json.Marshal(want.Interface())
	live, more := json.Marshal(have.Interface())
	if err != nil || more != nil || string(desired) != string(live) {
		c.differ(at, want, have)
	}
}

// lists compares two atomic lists.
func (c *comparison) lists(at path, want, have reflect.Value) {
	if want.Len() != have.Len() {
		c.differ(at, want, have)
		return
	}
	for i := range want.Len() {
		c.values(at.item(fmt.Sprintf("[%d]", i), i), want.Index(i), have.Index(i), true, nil)
	}
}

// sets compares two lists of distinct values, of which each has its own owner.
func (c *comparison) sets(at path, want, have reflect.Value) {
	for _, item := range want.Seq2() {
		found := false
		for _, other := range have.Seq2() {
			found = found || other.Equal(item)
		}
		if !found {
			c.differ(at, want, have)
			return
		}
	}
}

// items compares two lists whose items are identified by keys. Items of other field managers
// are no difference, but a second item with the keys of a desired one is: of two variables
// with one name, for example, the last one is in effect. If desired has the same keys more than once,
// which the API server accepts in some lists, the first is compared with the first, and so on. A patch
// replaces the list.
func (c *comparison) items(at path, keys []field, want, have reflect.Value) {
	live := map[string][]int{} // The indices of the items that have not been compared.
	for i := range have.Len() {
		key := keyOf(keys, have.Index(i))
		live[key] = append(live[key], i)
	}
	differ := func(key string, desired, live reflect.Value) {
		replace := operation{Op: "add", Path: at.pointer, Value: want.Interface()}
		c.found = append(c.found, difference{field: at.field + key, want: desired, have: live, operation: replace, list: at.field})
	}
	for i := range want.Len() {
		key := keyOf(keys, want.Index(i))
		if same := live[key]; len(same) > 0 {
			c.values(at.item(key, same[0]), want.Index(i), have.Index(same[0]), false, nil)
			live[key] = same[1:]
		} else {
			differ(key, want.Index(i), reflect.Value{})
		}
	}
	for i := range want.Len() {
		if key := keyOf(keys, want.Index(i)); len(live[key]) > 0 {
			differ(key, reflect.Value{}, have)
		}
	}
}

// keyOf returns the keys of a list item as a path has them: [port=80,protocol=TCP]. The protocol of a
// port is TCP where it is unset.
func keyOf(keys []field, item reflect.Value) string {
	var parts []string
	for i := range keys {
		value := item.Field(keys[i].index)
		if text := fmt.Sprint(value); keys[i].name == "protocol" {
			parts = append(parts, "protocol="+cmp.Or(text, string(corev1.ProtocolTCP)))
		} else if !keys[i].unset(value) {
			parts = append(parts, keys[i].name+"="+text)
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
		return !inner.unset(v) && !isEmptyStruct(&inner, reflect.Indirect(v))
	})
}

// field is a field of a Go struct in its JSON form.
type field struct {
	index int
	// name is the name of the field, "" if its own fields are inlined.
	name string
	// omitEmpty is true if JSON omits the field where it is empty.
	omitEmpty bool
	// merge is how server-side apply merges the field; keys are the fields that identify an
	// item if it is a keyed list.
	merge merge
	keys  []field
	// unionMember is true for a member of a union: if it is unset in the desired state, it
	// must be unset.
	unionMember bool
	// isDefault reports whether a value is the API server's default for a field that is unset
	// in the desired state; it may be nil.
	isDefault func(desired, value reflect.Value) bool
}

// unset reports whether JSON omits the field with this value, or has a null, which has the
// same effect.
func (f *field) unset(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		return value.IsNil()
	case reflect.Map, reflect.Slice:
		return value.IsNil() || f.omitEmpty && value.Len() == 0
	case reflect.Struct:
		return false
	default:
		return f.omitEmpty && value.IsZero()
	}
}

// empty reports whether a live value is unset; a list or map without items is unset as well.
func empty(value reflect.Value) bool {
	if value.Kind() == reflect.Slice || value.Kind() == reflect.Map {
		return value.Len() == 0
	}
	return value.IsZero()
}

// fieldCache has the []field of each reflect.Type.
var fieldCache sync.Map

// fieldsOf returns the fields of a struct type, in their order.
func fieldsOf(t reflect.Type) []field {
	if fields, ok := fieldCache.Load(t); ok {
		return fields.([]field)
	}
	var fields []field
	for i := range t.NumField() {
		tag := t.Field(i).Tag.Get("json")
		if tag == "-" || !t.Field(i).IsExported() {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		f := field{index: i, name: name, omitEmpty: strings.Contains(options, "omitempty")}
		if at := (fieldOf{t, name}); name != "" {
			f.merge, f.keys = mergeOf(at, t.Field(i).Type)
			f.unionMember, f.isDefault = unionMembers[at] || unionTypes[t], defaults[at]
		}
		fields = append(fields, f)
	}
	fieldCache.Store(t, fields)
	return fields
}

// The Go types of k8s.io/api do not have the merge markers of their fields at run time, so
// the tables in this file repeat them for the fields of a Deployment, a DaemonSet and a
// Service. A test compares the tables with the API server's OpenAPI schema, which client-go
// is generated from (schema_test.go).

// merge is how server-side apply merges a field.
type merge int

const (
	// granular: each member has its own owner.
	granular merge = iota
	// atomic: an apply replaces the field, so an additional member is a difference.
	atomic
	// keyed: a list whose items are identified by some of their fields.
	keyed
	// set: a list of distinct values, each with its own owner.
	set
)

type fieldOf struct {
	parent reflect.Type
	name   string
}

func of[T any](name string) fieldOf { return fieldOf{reflect.TypeFor[T](), name} }

// listKeys are the listMapKey markers of k8s.io/api, by the name of the list. All other lists
// are atomic.
var listKeys = map[string][]string{
	"containers":                {"name"},
	"initContainers":            {"name"},
	"env":                       {"name"},
	"evictionResponders":        {"name"},
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

// setLists are the lists with the marker listType=set.
var setLists = map[fieldOf]bool{
	of[corev1.VolumeMount]("bindMountOptions"): true,
	of[metav1.ObjectMeta]("finalizers"):        true,
}

// atomicMaps are the maps with the marker mapType=atomic.
var atomicMaps = map[fieldOf]bool{
	of[corev1.PodSpec]("nodeSelector"): true,
	of[corev1.ServiceSpec]("selector"): true,
}

// atomicTypes are the structs with the marker structType=atomic.
var atomicTypes = map[reflect.Type]bool{
	reflect.TypeFor[corev1.ConfigMapKeySelector]():      true,
	reflect.TypeFor[corev1.FileKeySelector]():           true,
	reflect.TypeFor[corev1.LocalObjectReference]():      true,
	reflect.TypeFor[corev1.NodeSelector]():              true,
	reflect.TypeFor[corev1.NodeSelectorTerm]():          true,
	reflect.TypeFor[corev1.ObjectFieldSelector]():       true,
	reflect.TypeFor[corev1.ResourceFieldSelector]():     true,
	reflect.TypeFor[corev1.SecretKeySelector]():         true,
	reflect.TypeFor[corev1.SecretReference]():           true,
	reflect.TypeFor[corev1.TypedLocalObjectReference](): true,
	reflect.TypeFor[metav1.LabelSelector]():             true,
	reflect.TypeFor[metav1.OwnerReference]():            true,
}

// unionTypes are the structs of which at most one field may be set. The API server refuses a
// second one instead of removing the first.
var unionTypes = map[reflect.Type]bool{
	reflect.TypeFor[corev1.EnvVarSource]():     true,
	reflect.TypeFor[corev1.LifecycleHandler](): true,
	reflect.TypeFor[corev1.ProbeHandler]():     true,
	reflect.TypeFor[corev1.VolumeSource]():     true,
}

// unionMembers are the members of unions in structs that have other fields as well.
var unionMembers = map[fieldOf]bool{
	of[appsv1.DeploymentStrategy]("rollingUpdate"):           true,
	of[appsv1.DaemonSetUpdateStrategy]("rollingUpdate"):      true,
	of[corev1.AppArmorProfile]("localhostProfile"):           true,
	of[corev1.EnvVar]("value"):                               true,
	of[corev1.EnvVar]("valueFrom"):                           true,
	of[corev1.PodResourceClaim]("resourceClaimName"):         true,
	of[corev1.PodResourceClaim]("resourceClaimTemplateName"): true,
	of[corev1.SeccompProfile]("localhostProfile"):            true,
}

// defaults are the API server's defaults for members of unions and fields of atomic values,
// where any other value that is unset in desired is a difference (SetDefaults_* in
// k8s.io/kubernetes/pkg/apis/core/v1/defaults.go, and the +default markers of k8s.io/api).
var defaults = map[fieldOf]func(desired, value reflect.Value) bool{
	of[corev1.FileKeySelector]("optional"):                        isPointerTo(false),
	of[corev1.ObjectFieldSelector]("apiVersion"):                  func(_, value reflect.Value) bool { return value.String() == "v1" },
	of[corev1.ServiceAccountTokenProjection]("expirationSeconds"): isPointerTo(int64(3600)),
	of[corev1.VolumeSource]("emptyDir"): func(desired, value reflect.Value) bool {
		return desired.IsZero() && value.Elem().IsZero()
	},
	of[appsv1.DeploymentStrategy]("rollingUpdate"):      isRollingUpdate,
	of[appsv1.DaemonSetUpdateStrategy]("rollingUpdate"): isRollingUpdate,
}

func isRollingUpdate(desired, _ reflect.Value) bool {
	kind := desired.FieldByName("Type").String()
	return kind == "" || kind == "RollingUpdate"
}

func isPointerTo[T comparable](want T) func(desired, value reflect.Value) bool {
	return func(_, value reflect.Value) bool { return value.Elem().Interface() == any(want) }
}

// mergeOf returns how a field of type t is merged, and by which keys.
func mergeOf(at fieldOf, t reflect.Type) (merge, []field) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case setLists[at]:
		return set, nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && listKeys[at.name] != nil:
		return keyed, keysOf(listKeys[at.name], t.Elem())
	case t.Kind() == reflect.Slice, atomicTypes[t], atomicMaps[at]:
		return atomic, nil
	}
	return granular, nil
}

// keysOf returns the fields that identify an item.
func keysOf(names []string, item reflect.Type) []field {
	var keys []field
	fields := fieldsOf(item)
	for _, name := range names {
		if i := slices.IndexFunc(fields, func(f field) bool { return f.name == name }); i >= 0 {
			keys = append(keys, fields[i])
		}
	}
	return keys
}
