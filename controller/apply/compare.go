// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"fmt"
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
	path  []step
	found []difference
}

// step is one element of a path: a member of a struct or map, or an item of a list, which may
// have keys. It becomes text for a difference only, because nearly all comparisons find none.
type step struct {
	member string
	isItem bool
	index  int
	item   reflect.Value
	keys   []field
}

// differences returns the fields of live that do not have their desired value. The two objects
// are compared without TypeMeta, which objects in the cache do not have, and without status, which
// other controllers write.
func differences(desired, live client.Object) []difference {
	c := comparison{}
	if want, ok := desired.(*unstructured.Unstructured); ok {
		c.unstructured(want, live.(*unstructured.Unstructured))
		return c.found
	}
	want, have := reflect.ValueOf(desired).Elem(), reflect.ValueOf(live).Elem()
	fields := fieldsOf(want.Type())
	for i := range fields {
		if name := fields[i].name; name != "" && name != "status" {
			c.field(&fields[i], want, have, false)
		}
	}
	return c.found
}

func (c *comparison) enter(s step) { c.path = append(c.path, s) }

func (c *comparison) leave() { c.path = c.path[:len(c.path)-1] }

// differ records a difference of the current field, which a patch sets or removes.
func (c *comparison) differ(want, have reflect.Value) {
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
	replace := operation{Op: "add", Path: c.pointer(len(c.path) - 1), Value: desired.Interface()}
	c.found = append(c.found, difference{field: c.name(len(c.path)), want: want, have: have, operation: replace, list: c.name(len(c.path) - 1)})
}

func (c *comparison) name(length int) string {
	var b strings.Builder
	for _, s := range c.path[:length] {
		if s.isItem {
			b.WriteString(nameOf(s))
		} else {
			b.WriteString("." + s.member)
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

func (c *comparison) pointer(length int) string {
	var b strings.Builder
	for _, s := range c.path[:length] {
		if s.isItem {
			s.member = strconv.Itoa(s.index)
		}
		b.WriteString("/" + escapePointer.Replace(s.member))
	}
	return b.String()
}

// structs compares two structs. In an atomic value, a field that is unset in desired must be unset in live.
func (c *comparison) structs(want, have reflect.Value, inAtomic bool) {
	fields := fieldsOf(want.Type())
	for i := range fields {
		c.field(&fields[i], want, have, inAtomic)
	}
}

func (c *comparison) field(f *field, parent, live reflect.Value, inAtomic bool) {
	want, have := parent.Field(f.index), live.Field(f.index)
	if f.name == "" { // Its own fields are inlined.
		c.structs(want, have, inAtomic)
		return
	}
	c.enter(step{member: f.name})
	defer c.leave()
	switch {
	case f.unset(want):
		if (inAtomic || f.unionMember) && !empty(have) && (f.isDefault == nil || !f.isDefault(parent, have)) {
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
	for entry := want.MapRange(); entry.Next(); {
		key := entry.Key() // Each call copies the key.
		c.enter(step{member: key.String()})
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
	for entry := have.MapRange(); entry.Next(); {
		if !want.MapIndex(entry.Key()).IsValid() {
			c.enter(step{member: entry.Key().String()})
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
	for i := range want.Len() {
		c.enter(step{isItem: true, index: i})
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
	for i := range want.Len() {
		item, at := want.Index(i), counterpart(keys, i, want, have)
		c.enter(step{isItem: true, index: at, item: item, keys: keys})
		if at < 0 {
			c.differInList(item, reflect.Value{}, want)
		} else {
			c.values(item, have.Index(at), false, nil)
			if have.Len() > want.Len() && count(keys, item, have) > count(keys, item, want) {
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
	const tcp = string(corev1.ProtocolTCP)
	for i := range keys {
		a, b := item.Field(keys[i].index), other.Field(keys[i].index)
		if !a.Equal(b) && (keys[i].name != "protocol" || cmp.Or(a.String(), tcp) != cmp.Or(b.String(), tcp)) {
			return false
		}
	}
	return true
}

// nameOf returns a list item as it is named in a path: [port=80,protocol=TCP], or [0] without keys.
func nameOf(s step) string {
	if s.keys == nil {
		return fmt.Sprintf("[%d]", s.index)
	}
	var parts []string
	for i := range s.keys {
		if value := s.item.Field(s.keys[i].index); !s.keys[i].unset(value) {
			parts = append(parts, fmt.Sprintf("%s=%v", s.keys[i].name, value))
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
	of[appsv1.DeploymentStrategy]("rollingUpdate"): func(desired, _ reflect.Value) bool {
		kind := desired.Interface().(appsv1.DeploymentStrategy).Type
		return kind == "" || kind == appsv1.RollingUpdateDeploymentStrategyType
	},
	of[appsv1.DaemonSetUpdateStrategy]("rollingUpdate"): func(desired, _ reflect.Value) bool {
		kind := desired.Interface().(appsv1.DaemonSetUpdateStrategy).Type
		return kind == "" || kind == appsv1.RollingUpdateDaemonSetStrategyType
	},
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
