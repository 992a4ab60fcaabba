// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
)

var converter = clientgoapply.NewTypeConverter(clientgoscheme.Scheme)

// typesOfBlocks returns an empty object of each type of Kubernetes that a block of a spec becomes, with TypeMeta.
func typesOfBlocks() (all []client.Object) {
	for _, block := range children.Blocks {
		if block.Type != nil {
			child := block.New().(client.Object)
			child.GetObjectKind().SetGroupVersionKind(block.Kind)
			all = append(all, child)
		}
	}
	return all
}

// childTypes returns an empty object of each type of child, with TypeMeta.
func childTypes() []client.Object {
	deployment, daemonSet, service := &appsv1.Deployment{}, &appsv1.DaemonSet{}, &corev1.Service{}
	deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	daemonSet.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
	service.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	return []client.Object{deployment, daemonSet, service}
}

func typedValue(t *testing.T, obj runtime.Object) *typed.TypedValue {
	t.Helper()
	value, err := converter.ObjectToTyped(obj)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestTablesMatchTheOpenAPISchema compares the Go types of children with the API server's
// OpenAPI schema, by which server-side apply merges them: each list, map and struct must be
// merged as in the tables, and each entry of listKeys must be the name of a list.
func TestTablesMatchTheOpenAPISchema(t *testing.T) {
	t.Parallel()
	keyedLists := map[string]bool{}
	for _, obj := range append(childTypes(), typesOfBlocks()...) {
		value := typedValue(t, obj)
		w := schemaWalk{t: t, schema: value.Schema(), keyedLists: keyedLists}
		w.structs(reflect.TypeOf(obj).Elem(), value.TypeRef(), kinds.KindOf(obj), false)
		if w.fields < 25 {
			t.Errorf("only %d fields of a %s were compared", w.fields, kinds.KindOf(obj))
		}
	}
	for name := range listKeys {
		if !keyedLists[name] {
			t.Errorf("listKeys has %s, and the schema has no such keyed list", name)
		}
	}
}

type schemaWalk struct {
	t      *testing.T
	schema *schema.Schema
	fields int
	// keyedLists are the names of the keyed lists in the schema.
	keyedLists map[string]bool
}

func (w *schemaWalk) structs(typ reflect.Type, ref schema.TypeRef, at string, inAtomic bool) {
	w.t.Helper()
	atom, ok := w.schema.Resolve(ref)
	if !ok || atom.Map == nil {
		w.t.Errorf("%s: the schema has no struct", at)
		return
	}
	for _, f := range fieldsOf(typ) {
		goType := typ.Field(f.index).Type
		if f.name == "" {
			w.structs(goType, ref, at, inAtomic)
			continue
		}
		// A pod template has no ephemeral containers.
		if f.name == "status" || f.name == "managedFields" || f.name == "ephemeralContainers" {
			continue
		}
		described, ok := atom.FindField(f.name)
		if !ok {
			w.t.Errorf("%s.%s: the schema has no such field", at, f.name)
			continue
		}
		w.field(&f, goType, described.Type, at+"."+f.name, inAtomic)
	}
}

func (w *schemaWalk) field(f *field, typ reflect.Type, ref schema.TypeRef, at string, inAtomic bool) {
	w.t.Helper()
	w.fields++
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	atom, _ := w.schema.Resolve(ref)
	want, keys := granular, []string(nil)
	switch {
	case atom.List != nil && atom.List.ElementRelationship == schema.Associative && len(atom.Keys) > 0:
		want, keys = keyed, slices.Sorted(slices.Values(atom.Keys))
		w.keyedLists[f.name] = true
	case atom.List != nil && atom.List.ElementRelationship == schema.Associative:
		want = set
	case atom.List != nil, atom.Map != nil && atom.Map.ElementRelationship == schema.Atomic && atom.Scalar == nil:
		want = atomic
	}
	var have []string
	for _, key := range f.keys {
		have = append(have, key.name)
	}
	slices.Sort(have)
	if !inAtomic && (f.merge != want || !slices.Equal(have, keys)) {
		w.t.Errorf("%s is merged as %d by %v, by the API server as %d by %v", at, f.merge, have, want, keys)
	}
	w.inside(typ, atom, at, inAtomic || want == atomic)
}

func (w *schemaWalk) inside(typ reflect.Type, atom schema.Atom, at string, inAtomic bool) {
	w.t.Helper()
	if isScalar(typ) {
		return
	}
	switch {
	case typ.Kind() == reflect.Struct:
		inner := schemaWalk{t: w.t, schema: w.schema, keyedLists: w.keyedLists}
		inner.atom(typ, atom, at, inAtomic)
		w.fields += inner.fields
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct && atom.List != nil:
		w.structs(typ.Elem(), atom.List.ElementType, at+"[]", inAtomic)
	case typ.Kind() == reflect.Map && typ.Elem().Kind() != reflect.String && typ != reflect.TypeFor[corev1.ResourceList]():
		w.t.Errorf("%s is a map of %s: a patch does not merge the values of maps", at, typ.Elem())
	}
}

// atom is structs for a resolved type.
func (w *schemaWalk) atom(typ reflect.Type, atom schema.Atom, at string, inAtomic bool) {
	w.t.Helper()
	w.structs(typ, schema.TypeRef{Inlined: atom}, at, inAtomic)
}

// Every field in a table is a field of its type.
func TestTablesHaveExistingFields(t *testing.T) {
	t.Parallel()
	named := map[fieldOf]bool{}
	for at := range unionMembers {
		named[at] = true
	}
	for at := range defaults {
		named[at] = true
	}
	for at := range atomicMaps {
		named[at] = true
	}
	for at := range setLists {
		named[at] = true
	}
	for at := range named {
		if !slices.ContainsFunc(fieldsOf(at.parent), func(f field) bool { return f.name == at.name }) {
			t.Errorf("%s has no field %s", at.parent, at.name)
		}
	}
}
