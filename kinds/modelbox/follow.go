// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// values are the fields of a spec that admission may derive, by their JSON pointers: those of
// defaults, and those that sizes define. Each value is decoded JSON.
type values map[string]any

// sizeFields are the fields of a spec that a size may define, and defaultFields the others that
// have a derived default.
var (
	sizeFields = [...]string{
		"args", "command", "envs", "image", "ports", "readinessProbe", "resources", "scheduling", "sharedMemory", "startupProbe", "strategy",
		"terminationGracePeriodSeconds",
	}
	defaultFields = [...]string{"livenessProbe", "progressDeadlineSeconds", "resourceType", "serviceType"}
)

const (
	typePointer        = "/spec/resourceType"
	serviceTypePointer = "/spec/serviceType"
	resourcesPointer   = "/spec/resources"
	schedulingPointer  = "/spec/scheduling"
	memoryPointer      = "/spec/sharedMemory"
	strategyPointer    = "/spec/strategy"
	imagePointer       = "/spec/image"
	portsPointer       = "/spec/ports"
	readinessPointer   = "/spec/readinessProbe"
	livenessPointer    = "/spec/livenessProbe"
	startupPointer     = "/spec/startupProbe"
	deadlinePointer    = "/spec/progressDeadlineSeconds"
)

// holders are the objects of which each field is a value of its own, the inner ones first.
var holders = [...]string{
	resourcesPointer + "/limits", resourcesPointer + "/requests", resourcesPointer, schedulingPointer, strategyPointer + "/rollingUpdate", strategyPointer,
	readinessPointer + "/httpGet", readinessPointer + "/tcpSocket", readinessPointer, livenessPointer + "/tcpSocket", livenessPointer,
	startupPointer + "/httpGet", startupPointer + "/tcpSocket", startupPointer,
}

// treeOf returns the part of a spec that has derived values as decoded JSON.
func (d *defaults) treeOf(spec *modelv1.ModelBoxSpec) map[string]any {
	part, tree := *spec, map[string]any{}
	d.setOthers(&part, &modelv1.ModelBoxSpec{})
	if data, err := json.Marshal(&part); err == nil { // It was decoded from JSON.
		_ = kjson.UnmarshalCaseSensitivePreserveInts(data, &tree)
	}
	return map[string]any{"spec": tree}
}

// setOthers sets the fields that have no derived values, and can be large, to those of another
// spec.
func (d *defaults) setOthers(to, from *modelv1.ModelBoxSpec) {
	to.PodTemplate, to.EnvFrom, to.Models, to.Schedules, to.Windows, to.Children = from.PodTemplate, from.EnvFrom, from.Models, from.Schedules, from.Windows, from.Children
	if !IsSize(d.spec.ResourceType) && (d.old == nil || !IsSize(d.old.ResourceType)) {
		to.Args, to.Command, to.Envs, to.Scheduling = from.Args, from.Command, from.Envs, from.Scheduling
	}
}

// valuesOf returns the values of a spec that are set.
func (d *defaults) valuesOf(spec *modelv1.ModelBoxSpec) values {
	tree, out := d.treeOf(spec)["spec"].(map[string]any), values{}
	for _, name := range append(sizeFields[:], defaultFields[:]...) {
		if value, ok := tree[name]; ok {
			out.add("/spec/"+name, value)
		}
	}
	delete(out, resourcesPointer+"/claims") // They are always the client's.
	return out
}

func (v values) add(at string, value any) {
	object, ok := value.(map[string]any)
	if !ok || !slices.Contains(holders[:], at) {
		v[at] = value
		return
	}
	for name, inner := range object {
		v.add(patch.Key(at, name), inner)
	}
}

// has reports whether there is a value at a pointer or below it.
func (v values) has(pointer string) bool {
	for at := range v {
		if rest, ok := strings.CutPrefix(at, pointer); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// equals reports whether a value is the one at a pointer.
func (v values) equals(at string, value any) bool {
	own, ok := v[at]
	return ok && same(at, value, own)
}

// same reports whether two values are equal, quantities in any notation.
func same(at string, a, b any) bool {
	if field := pointerOf(at); field == resourcesPointer || field == memoryPointer {
		one, err := rules.ParseQuantity(fmt.Sprint(a))
		other, wrong := rules.ParseQuantity(fmt.Sprint(b))
		return err == nil && wrong == nil && one.Cmp(other) == 0
	}
	return equality.Semantic.DeepEqual(a, b)
}

// pointerOf returns the pointer of the field of the spec that a value is in.
func pointerOf(at string) string {
	parts := strings.SplitN(at, "/", 4)
	return strings.Join(parts[:3], "/")
}

// namesOf returns the names in a pointer.
func namesOf(at string) []string {
	names := strings.Split(at[1:], "/")
	for i, name := range names {
		names[i] = patch.Unescape(name)
	}
	return names
}

// forget removes the values that can have been derived and that no client set: what sets them
// afterwards sets them as in a new object.
func (d *defaults) forget() {
	if d.stored == nil {
		return
	}
	is, next, sent := d.valuesOf(d.spec), values{}, d.spec.Resources
	isSet := d.isSet()
	for at, value := range is {
		switch {
		case !d.follows(at, value):
			next[at] = value
		case d.owners.HasManagedFields() && listKeys[at] != nil:
			if own := d.ownItems(at, value); len(own) > 0 {
				next[at] = own
			}
		case isSet(at, value):
			next[at] = value
		}
	}
	d.write(is, next)
	if d.spec.Resources == nil && d.spec.ResourceType == modelv1.ResourceTypeCustom && !IsSize(d.old.ResourceType) {
		// An editor shows those of the preset as if they were set, and an update with the same
		// values has no effect.
		d.spec.Resources = sent
	}
}

// follows reports whether a value can be one that the update derives again: in the pod template,
// only if it changes.
func (d *defaults) follows(at string, value any) bool {
	switch at {
	case serviceTypePointer:
		return value == string(corev1.ServiceTypeClusterIP) || value == string(corev1.ServiceTypeNodePort)
	case deadlinePointer:
		return value.(int64) >= progressSeconds && d.addsNewer(hasDeadline)
	}
	return d.changes && d.followsPods(at, value)
}

// followsPods is follows for the fields that make the pod template.
func (d *defaults) followsPods(at string, value any) bool {
	if d.hasSize() && isOfSizes(at) {
		return at != imagePointer || !d.keepsSize() || d.resizes()
	}
	switch name := at[strings.LastIndexByte(at, '/')+1:]; at {
	case typePointer:
		// Without managedFields, a wrong guess would change an object that should be refused.
		return d.owners.HasManagedFields() && (value == string(modelv1.ResourceTypeSmall) || value == string(modelv1.ResourceTypeCustom))
	case resourcesPointer + "/limits/" + name, resourcesPointer + "/requests/" + name:
		return inPresets(name, value) && !IsSize(d.spec.ResourceType)
	}
	return slices.Contains(probePorts[:], at) || startupTiming.equals(at, value) && !hasOtherAction(d.old.StartupProbe)
}

// hasSize reports whether the values of a size are set anew or removed: that of the object, which
// the cluster has, or one that it leaves.
func (d *defaults) hasSize() bool {
	_, known := d.sizes[d.spec.ResourceType]
	return known || IsSize(d.old.ResourceType) && !IsSize(d.spec.ResourceType)
}

// probePorts are the actions of the default probes, and startupTiming is what the default startup
// probe has beside its action.
var (
	probePorts    = [...]string{readinessPointer + "/tcpSocket/port", livenessPointer + "/tcpSocket/port", startupPointer + "/tcpSocket/port"}
	startupTiming = values{
		startupPointer + "/periodSeconds": int64(rules.StartupPeriodSeconds), startupPointer + "/failureThreshold": int64(rules.StartupFailureThreshold),
	}
)

// isSet returns a function that reports whether a client set a value to what it is. Without
// managedFields, the values of a field are taken for derived ones if the stored object has the
// same, and would have them as a new object too.
func (d *defaults) isSet() func(at string, value any) bool {
	if d.owners.HasManagedFields() {
		return func(at string, value any) bool {
			return d.owners.IsSet(at, func(set any) bool { return same(at, set, value) })
		}
	}
	anew := &modelv1.ModelBox{Spec: *d.old.DeepCopy()}
	anew.Name = d.stored.Name
	n, was := &defaults{box: anew, spec: &anew.Spec, sizes: d.sizes, admits: d.admits, unseen: true}, d.valuesOf(d.old)
	own := maps.Clone(was)
	maps.DeleteFunc(own, d.follows)
	n.write(was, own)
	n.all()
	sent, stored, derived := d.treeOf(d.spec), d.treeOf(d.old), d.treeOf(n.spec)
	return func(at string, _ any) bool {
		field := func(tree map[string]any) any { return tree["spec"].(map[string]any)[namesOf(at)[1]] }
		return !reflect.DeepEqual(field(sent), field(stored)) || !reflect.DeepEqual(field(sent), field(derived))
	}
}

// listKeys are the keys of the lists that are merged by an apply.
var listKeys = map[string][]string{portsPointer: {"port", "protocol"}, "/spec/envs": {"name"}}

// ownItems returns the items of a list that a client set.
func (d *defaults) ownItems(at string, list any) []any {
	return slices.DeleteFunc(slices.Clone(list.([]any)), func(item any) bool {
		fields, _ := item.(map[string]any)
		return !d.owners.IsItemSet(at, fields, listKeys[at]...)
	})
}

// write changes the values of the spec from is to next.
func (d *defaults) write(is, next values) {
	tree := d.treeOf(d.spec)
	for at := range is {
		if _, stays := next[at]; !stays {
			unstructured.RemoveNestedField(tree, namesOf(at)...)
		}
	}
	for at, value := range next {
		if !is.equals(at, value) {
			_ = unstructured.SetNestedField(tree, value, namesOf(at)...) // Only objects hold values.
		}
	}
	d.removeEmpty(tree, is)
	var spec modelv1.ModelBoxSpec
	if data, err := json.Marshal(tree["spec"]); err == nil && json.Unmarshal(data, &spec) == nil {
		d.setOthers(&spec, d.spec)
		*d.spec = spec
	}
}

// removeEmpty removes the objects that have lost their last value, now or by a client, and that no
// client set.
func (d *defaults) removeEmpty(tree map[string]any, was values) {
	for _, at := range holders {
		emptied := d.changes && d.owners.HasManagedFields() && (at != resourcesPointer || !IsSize(d.spec.ResourceType))
		object, _, _ := unstructured.NestedFieldNoCopy(tree, namesOf(at)...)
		if (emptied || was.has(at)) && equality.Semantic.DeepEqual(object, map[string]any{}) && !d.owners.IsSet(at, nil) {
			unstructured.RemoveNestedField(tree, namesOf(at)...)
		}
	}
}

// recorded returns what record compares, nil if no operations are recorded.
func (d *defaults) recorded() map[string]any {
	if d.ops == nil {
		return nil
	}
	return d.treeOf(d.spec)
}

// record records the changes from one value to another. What was no object is set as a whole,
// because it may be null in the request. Of ports, the fields of each are set.
func record(ops *patch.Ops, at string, from, to any) {
	was, isObject := from.(map[string]any)
	now, becomesObject := to.(map[string]any)
	before, _ := from.([]any)
	after, _ := to.([]any)
	var ignored any
	switch {
	case isObject && becomesObject:
		names := maps.Clone(was)
		maps.Copy(names, now)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			record(ops, patch.Key(at, name), was[name], now[name])
		}
	case at == portsPointer && len(before) > 0 && len(before) == len(after):
		for i := range before {
			record(ops, patch.At(at, i, ""), before[i], after[i])
		}
	case equality.Semantic.DeepEqual(from, to):
	case to == nil:
		patch.Unset(ops, at, &ignored)
	default:
		patch.Set(ops, at, &ignored, to)
	}
}
