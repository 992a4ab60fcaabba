// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// The API server computes metadata.managedFields before it calls mutating admission, and
// before it drops what it does not serve. So a field that the controller alone owns and
// that does not have its desired value got its value from admission or from the API
// server, in the answer to a write of the controller's own: writing again would bring
// the same answer. A value that another field manager wrote is owned by that manager, and
// what another manager removed is owned by none. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management

// rewrite is a field whose value in the cluster is not the desired one because
// admission or the API server rewrote it when it was written.
type rewrite struct {
	// kind and name are those of the child.
	kind, name string
	// field is the path of the field.
	field string
	// desired and value are the desired and the observed value, shortened. Either is empty
	// if there is none.
	desired, value string

	sum uint64
}

// drift is a field that another field manager changed or removed.
type drift struct {
	field string
	// manager owns the field, or if it was removed, is the latest other one that changed
	// the child. It is empty if managedFields do not tell.
	manager string
}

// classify tells the differences of a child that another field manager made from those
// that a write of our own ended with. live carries its managedFields.
func classify(desired, live client.Object) ([]drift, []rewrite) {
	found := differences(desired, live)
	if len(found) == 0 {
		return nil, nil
	}
	owners := ownersOf(live)
	var drifts []drift
	var rewrites []rewrite
	for i := range found {
		owned := found[i].path.owned()
		manager, others := owners.other(owned)
		// What desired leaves out and admission added has no owner.
		if others || found[i].want.IsValid() && !owners.ours(owned) {
			drifts = append(drifts, drift{field: found[i].path.String(), manager: cmp.Or(manager, latest(live))})
			continue
		}
		rewrites = append(rewrites, found[i].rewrite(desired))
	}
	return drifts, rewrites
}

// rewritesIn are the differences of a child, as they are if no other manager made them.
func rewritesIn(desired, live client.Object) []rewrite {
	var rewrites []rewrite
	for _, d := range differences(desired, live) {
		rewrites = append(rewrites, d.rewrite(desired))
	}
	return rewrites
}

func (d *difference) rewrite(child client.Object) rewrite {
	e := rewrite{
		kind: kindOf(child), name: child.GetName(), field: d.path.String(), desired: short(d.want), value: short(d.have),
	}
	sum := fnv.New64a()
	_, _ = fmt.Fprintf(sum, "%s=%s", e.field, encoded(d.have)) // A hash never errs.
	e.sum = sum.Sum64()
	return e
}

func encoded(value reflect.Value) string {
	if !value.IsValid() {
		return ""
	}
	data, err := json.Marshal(value.Interface())
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// short is a value in a few words.
func short(value reflect.Value) string {
	const most = 80
	text := []rune(strings.Trim(encoded(value), `"`))
	if len(text) > most {
		return string(text[:most]) + "..."
	}
	return string(text)
}

func (e *rewrite) String() string {
	return fmt.Sprintf("%s rewritten by admission: %s -> %s", e.field, cmp.Or(e.desired, "nothing"), cmp.Or(e.value, "nothing"))
}

// latest is the other manager whose fields changed last, status aside.
func latest(obj client.Object) string {
	var last metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager != FieldManager && entry.Subresource != "status" && !entry.Time.Before(last.Time) {
			last = entry
		}
	}
	return last.Manager
}

// owners are the field sets of an object's managers.
type owners []owner

type owner struct {
	manager string
	ours    bool
	set     fieldpath.Set
}

func ownersOf(obj client.Object) owners {
	var all owners
	for _, entry := range obj.GetManagedFields() {
		o := owner{manager: entry.Manager, ours: entry.Manager == FieldManager && entry.Subresource == ""}
		if entry.FieldsV1 == nil || o.set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue // It owns nothing that can be told.
		}
		all = append(all, o)
	}
	return all
}

// other is the first other manager that owns the field or something in it.
func (all owners) other(field fieldpath.Path) (manager string, found bool) {
	for i := range all {
		if !all[i].ours && covers(&all[i].set, field) {
			return all[i].manager, true
		}
	}
	return "", false
}

func (all owners) ours(field fieldpath.Path) bool {
	for i := range all {
		if all[i].ours && covers(&all[i].set, field) {
			return true
		}
	}
	return false
}

// covers tells whether a set has the path or something below it. Who owns what is above
// it owns that it is there, and not what is in it: an atomic field, of which all belongs
// to one manager, is where a path ends (path.owned).
func covers(set *fieldpath.Set, path fieldpath.Path) bool {
	for _, element := range path[:len(path)-1] {
		children, ok := set.Children.Get(element)
		if !ok {
			return false
		}
		set = children
	}
	last := path[len(path)-1]
	_, below := set.Children.Get(last)
	return below || set.Members.Has(last)
}
