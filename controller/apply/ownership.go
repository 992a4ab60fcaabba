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
// before it drops fields that it does not serve. So a field that only the controller owns and
// that does not have its desired value was rewritten by admission or by the API server, in a
// write of the controller: the next write would have the same result. A value that another
// field manager wrote is owned by that manager, and a field that another manager removed has
// no owner. See
// https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management

// rewrite is a field whose value in the cluster is not the desired one because
// admission or the API server rewrote it when it was written.
type rewrite struct {
	// kind and name are those of the child.
	kind, name string
	// field is the path of the field.
	field string
	// desired and value are the desired and the observed value, shortened, or empty if there
	// is none.
	desired, value string

	// hash is that of the field and its observed value.
	hash uint64
}

// drift is a field that another field manager modified or removed.
type drift struct {
	field string
	// manager owns the field, or if the field was removed, is the other manager with the latest
	// change of the child. It is empty if managedFields does not have it.
	manager string
}

// classify separates the differences of a child that another field manager made from those
// that the controller's own writes resulted in. live has its managedFields.
func classify(desired, live client.Object) ([]drift, []rewrite) {
	found := differences(desired, live)
	if len(found) == 0 {
		return nil, nil
	}
	owners := fieldSetsOf(live)
	var drifts []drift
	var rewrites []rewrite
	for i := range found {
		owned := found[i].path.owned()
		manager, others := owners.other(owned)
		// A field that is unset in the desired state and that admission added has no owner.
		if others || found[i].want.IsValid() && !owners.ours(owned) {
			drifts = append(drifts, drift{field: found[i].path.String(), manager: cmp.Or(manager, latestManager(live))})
			continue
		}
		rewrites = append(rewrites, found[i].rewrite(desired))
	}
	return drifts, rewrites
}

// rewritesIn returns the differences of a child that no other manager modified.
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
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s=%s", e.field, encoded(d.have)) // A hash returns no error.
	e.hash = hash.Sum64()
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

// short returns a value in JSON, without quotes and shortened.
func short(value reflect.Value) string {
	const limit = 80
	text := []rune(strings.Trim(encoded(value), `"`))
	if len(text) > limit {
		return string(text[:limit]) + "..."
	}
	return string(text)
}

func (e *rewrite) String() string {
	return fmt.Sprintf("%s rewritten by admission: %s -> %s", e.field, cmp.Or(e.desired, "nothing"), cmp.Or(e.value, "nothing"))
}

// latestManager returns the other manager with the latest change, except of status.
func latestManager(obj client.Object) string {
	var last metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager != FieldManager && entry.Subresource != "status" && !entry.Time.Before(last.Time) {
			last = entry
		}
	}
	return last.Manager
}

// fieldSets are the field sets of an object's managers.
type fieldSets []fieldSet

type fieldSet struct {
	manager string
	ours    bool
	set     fieldpath.Set
}

func fieldSetsOf(obj client.Object) fieldSets {
	var all fieldSets
	for _, entry := range obj.GetManagedFields() {
		o := fieldSet{manager: entry.Manager, ours: entry.Manager == FieldManager && entry.Subresource == ""}
		if entry.FieldsV1 == nil || o.set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue // Its fields are unknown.
		}
		all = append(all, o)
	}
	return all
}

// other returns the first other manager that owns the field or a part of it.
func (all fieldSets) other(field fieldpath.Path) (manager string, found bool) {
	for i := range all {
		if !all[i].ours && covers(&all[i].set, field) {
			return all[i].manager, true
		}
	}
	return "", false
}

// ours reports whether the controller owns the field or a part of it.
func (all fieldSets) ours(field fieldpath.Path) bool {
	for i := range all {
		if all[i].ours && covers(&all[i].set, field) {
			return true
		}
	}
	return false
}

// covers reports whether a set has the path or a path below it. The owner of a parent field
// owns its existence, and not its content; an atomic field, whose whole content has one
// owner, is the end of a path (path.owned).
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
