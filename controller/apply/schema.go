// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
func (f *field) empty(value reflect.Value) bool {
	switch value.Kind() {
	case reflect.Slice, reflect.Map:
		return value.Len() == 0
	case reflect.Struct:
		return value.IsZero()
	}
	return f.unset(value) || value.Kind() != reflect.Pointer && value.IsZero()
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
		if name != "" {
			f.addSchema(t, t.Field(i).Type)
		}
		fields = append(fields, f)
	}
	fieldCache.Store(t, fields)
	return fields
}

// addSchema fills in what the tables in schema.go have for the field.
func (f *field) addSchema(parent, t reflect.Type) {
	at := fieldOf{parent, f.name}
	f.merge, f.keys = mergeOf(at, t)
	f.unionMember = unionMembers[at] || unionTypes[parent]
	f.isDefault = defaults[at]
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
	for _, name := range names {
		for _, f := range fieldsOf(item) {
			if f.name == name {
				keys = append(keys, f)
			}
		}
	}
	return keys
}
