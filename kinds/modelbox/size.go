// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Sizes are the sizes of a cluster by their names, without the built-in ones. Of each spec, only the
// fields that a size defines are set, all of which are in sizeFields. It must not be changed.
type Sizes map[modelv1.ResourceType]*modelv1.ModelBoxSpec

// Admit sets the defaults of box as Default does, and the fields that its size defines. It returns the
// errors that only the sizes of the cluster show, which are judged here and nowhere else: admission
// stores the values of a size in the object, and a later change of the size is none of the object.
//
// A field that the size defines has its stored value or the size's current one. An update that changes
// no field of the pod template keeps the stored values, and one that does writes all current ones, except
// for the image: another one comes only with ResizeAnnotation, or with another resourceType.
// scheduling as a whole belongs to the size: what users may set there decides it.
func Admit(box, old *modelv1.ModelBox, sizes Sizes, ops *patch.Ops) field.ErrorList {
	d := newDefaults(box, old, ops)
	d.sizes, d.admits = sizes, true
	d.all()
	return append(d.contradictions(), d.serverless()...)
}

// IsSize reports whether a resource type can be the name of a size of the cluster, of which only
// admission knows the values.
func IsSize(name modelv1.ResourceType) bool {
	return !slices.Contains(resourceTypes, name) && len(rules.Label(nil, string(name))) == 0
}

// values are the fields of a spec that sizes define, by their JSON pointers. Each value is decoded JSON.
type values map[string]any

// sizeFields are the fields of a spec that a size may define.
var sizeFields = [...]string{
	"args", "command", "envs", "image", "ports", "readinessProbe", "resources", "scheduling", "sharedMemory", "startupProbe", "strategy",
	"terminationGracePeriodSeconds",
}

const (
	schedulingPointer = "/spec/scheduling"
	memoryPointer     = "/spec/sharedMemory"
	strategyPointer   = "/spec/strategy"
	imagePointer      = "/spec/image"
	readinessPointer  = "/spec/readinessProbe"
)

// notOfSizes are never values of a size: claims, and the action that the defaults of probes have.
var notOfSizes = [...]string{resourcesPointer + "/claims", readinessPointer + "/tcpSocket", startupPointer + "/tcpSocket"}

// holders are the objects of which each field is a value of its own, the inner ones first.
var holders = [...]string{
	resourcesPointer + "/limits", resourcesPointer + "/requests", resourcesPointer, schedulingPointer, strategyPointer + "/rollingUpdate", strategyPointer,
	readinessPointer + "/httpGet", readinessPointer, startupPointer + "/httpGet", startupPointer,
}

// treeOf returns a spec as decoded JSON, without podTemplate, which can be large.
func treeOf(spec *modelv1.ModelBoxSpec) map[string]any {
	part, tree := *spec, map[string]any{}
	part.PodTemplate = nil
	if data, err := json.Marshal(&part); err == nil { // It was decoded from JSON.
		_ = kjson.UnmarshalCaseSensitivePreserveInts(data, &tree)
	}
	return map[string]any{"spec": tree}
}

// valuesOf returns the values of a spec that are set.
func valuesOf(spec *modelv1.ModelBoxSpec) values {
	tree, out := treeOf(spec)["spec"].(map[string]any), values{}
	for _, name := range sizeFields {
		if value, ok := tree[name]; ok {
			out.add("/spec/"+name, value)
		}
	}
	for _, at := range notOfSizes {
		delete(out, at)
	}
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

// pointerOf returns the pointer of the field of the spec that a value is in.
func pointerOf(at string) string {
	parts := strings.SplitN(at, "/", 4)
	return strings.Join(parts[:3], "/")
}

// same reports whether two values are equal, quantities in any notation.
func same(at string, a, b any) bool {
	first, ok := a.(string)
	second, also := b.(string)
	if field := pointerOf(at); ok && also && (field == resourcesPointer || field == memoryPointer) {
		one, err := rules.ParseQuantity(first)
		other, wrong := rules.ParseQuantity(second)
		return err == nil && wrong == nil && one.Cmp(other) == 0
	}
	return equality.Semantic.DeepEqual(a, b)
}

// own returns the values that clients set: all others can have been written by admission. Without
// managedFields, those that the size defines and that are stored are taken for its values.
func (d *defaults) own(is values) values {
	out := maps.Clone(is)
	switch {
	case d.old == nil:
	case d.owners.HasManagedFields():
		maps.DeleteFunc(out, func(at string, value any) bool {
			return listKeys[at] == nil && !d.owners.IsValueSet(at, func(set any) bool { return same(at, set, value) })
		})
		d.keepOwnItems(out)
	case IsSize(d.old.ResourceType) && !isUnseen(d.stored):
		size, _ := d.sizeOf(d.old.ResourceType)
		was := valuesOf(d.old)
		maps.DeleteFunc(out, func(at string, value any) bool { return ofSize(at, size) && was.equals(at, value) })
	}
	return out
}

// listKeys are the keys of the lists that are merged by an apply.
var listKeys = map[string][]string{"/spec/ports": {"port", "protocol"}, "/spec/envs": {"name"}}

// keepOwnItems removes the items of lists that no client set.
func (d *defaults) keepOwnItems(v values) {
	for at, keys := range listKeys {
		list, _ := v[at].([]any)
		own := slices.DeleteFunc(slices.Clone(list), func(item any) bool {
			fields, _ := item.(map[string]any)
			return !d.owners.IsItemSet(at, fields, keys...)
		})
		if v[at] = own; len(own) == 0 {
			delete(v, at)
		}
	}
}

// sameSize reports whether the object names the size that it is stored with, and keepsSize whether it is
// stored with its values too, which it is not if admission has never seen it.
func (d *defaults) sameSize() bool {
	return d.old != nil && IsSize(d.old.ResourceType) && d.old.ResourceType == d.sentType
}

func (d *defaults) keepsSize() bool { return d.sameSize() && !isUnseen(d.stored) }

// restored returns the spec that the client sent with the stored values of its size, so that it
// differs from the stored one in what the client changed.
func (d *defaults) restored() *modelv1.ModelBoxSpec {
	if !d.admits || !d.keepsSize() {
		return d.spec
	}
	box := &modelv1.ModelBox{Spec: *d.spec.DeepCopy()}
	is := valuesOf(d.spec)
	(&defaults{box: box, spec: &box.Spec}).write(is, d.stayed(is))
	if was := d.old.StartupProbe; box.Spec.StartupProbe == nil && was != nil && isDefaultStartupProbe(was) {
		box.Spec.StartupProbe = was // It is derived again.
	}
	return &box.Spec
}

// stayed returns the values with the stored ones of the size that the client did not send.
func (d *defaults) stayed(is values) values {
	now, known := d.current()
	next, was := maps.Clone(is), valuesOf(d.old)
	for at := range derivable(d.old) {
		delete(was, at)
	}
	for at, value := range was {
		_, defined := now[at]
		if _, set := is[at]; !set && !d.hasProbe(at) && (defined || !known || pointerOf(at) == schedulingPointer) {
			next[at] = value
		}
	}
	return next
}

// hasProbe reports whether a value is of a probe that the client sent: the stored one is not merged with it.
func (d *defaults) hasProbe(at string) bool {
	in := pointerOf(at)
	return in == readinessPointer && d.spec.ReadinessProbe != nil || in == startupPointer && d.spec.StartupProbe != nil
}

// current returns the values of the object's size now, and false if there is no such size.
func (d *defaults) current() (now values, known bool) { return d.sizeOf(d.spec.ResourceType) }

func (d *defaults) sizeOf(name modelv1.ResourceType) (now values, known bool) {
	size, known := d.sizes[name]
	if !known {
		return values{}, false
	}
	return valuesOf(forModel(size, d.spec)), true
}

// size sets the values of the object's size. Without the sizes, in the controller and in the validating
// webhook, an object has those that are stored.
func (d *defaults) size() {
	if !d.admits || !IsSize(d.spec.ResourceType) {
		return
	}
	now, known := d.current()
	is := valuesOf(d.spec)
	own := d.own(is)
	var next values
	switch {
	case !known && !d.keepsSize():
		return
	case !known, d.keepsSize() && !d.changesPods():
		next = d.stayed(is)
	default:
		next = d.renewed(is, own, now)
	}
	for at := range next {
		d.givenStartup = d.givenStartup || pointerOf(at) == startupPointer && !own.has(at)
	}
	d.write(is, next)
	if d.spec.Resources == nil && known {
		patch.Set(d.ops, resourcesPointer, &d.spec.Resources, &corev1.ResourceRequirements{})
	}
}

// renewed returns the values that clients set, with the current ones of the size.
func (d *defaults) renewed(is, own, now values) values {
	next, derived := maps.Clone(own), derivable(d.spec)
	if d.keepsSize() && !d.resizes() && (is.has(imagePointer) || now.has(imagePointer)) {
		next.fill(values{imagePointer: valuesOf(d.old)[imagePointer]})
	}
	next.fill(now)
	maps.DeleteFunc(derived, func(at string, _ any) bool { return now.has(pointerOf(at)) })
	next.fill(derived)
	return next
}

// fill adds the values that are not set.
func (v values) fill(from values) {
	for at, value := range from {
		if _, set := v[at]; !set && value != nil {
			v[at] = value
		}
	}
}

// derivable returns the values in probes that can be defaults, of which the defaults decide: those of a size
// have an action that no default has.
func derivable(spec *modelv1.ModelBoxSpec) values {
	out := valuesOf(&modelv1.ModelBoxSpec{ReadinessProbe: spec.ReadinessProbe, StartupProbe: spec.StartupProbe})
	maps.DeleteFunc(out, func(at string, _ any) bool {
		return hasOtherAction(map[string]*corev1.Probe{readinessPointer: spec.ReadinessProbe, startupPointer: spec.StartupProbe}[pointerOf(at)])
	})
	return out
}

// resizes reports whether the update is to write all current values of the size.
func (d *defaults) resizes() bool {
	return d.old != nil && d.box.Annotations[modelv1.ResizeAnnotation] == strconv.FormatInt(d.box.Generation, 10)
}

// leaveSize removes the values of the size that an object had before, also if resourceType becomes custom:
// then a client has to set resources.
func (d *defaults) leaveSize() {
	if d.old == nil || !IsSize(d.old.ResourceType) || IsSize(d.spec.ResourceType) {
		return
	}
	is := valuesOf(d.spec)
	next := d.own(is)
	next.fill(derivable(d.spec))
	preset, _ := Preset(d.spec.ResourceType)
	for at, value := range valuesOf(&modelv1.ModelBoxSpec{Resources: &preset}) {
		if was, set := is[at]; set && same(at, was, value) {
			next[at] = was // It is derived from the preset already.
		}
	}
	d.write(is, next)
	if r := d.spec.Resources; r != nil && len(r.Limits)+len(r.Requests)+len(r.Claims) == 0 && !d.owners.IsSet(resourcesPointer, nil) {
		patch.Unset(d.ops, resourcesPointer, &d.spec.Resources) // Those of a size without resources.
	}
}

// write changes the values of the spec from is to next, and removes the objects that have lost their last
// value and that no client set.
func (d *defaults) write(is, next values) {
	before, after := treeOf(d.spec), treeOf(d.spec)
	for at := range is {
		if _, stays := next[at]; !stays {
			unstructured.RemoveNestedField(after, namesOf(at)...)
		}
	}
	for at, value := range next {
		if !is.equals(at, value) {
			_ = unstructured.SetNestedField(after, value, namesOf(at)...) // Only objects hold values.
		}
	}
	for _, at := range holders {
		if !is.has(at) || d.owners.IsSet(at, nil) {
			continue
		}
		if object, _, _ := unstructured.NestedFieldNoCopy(after, namesOf(at)...); equality.Semantic.DeepEqual(object, map[string]any{}) {
			unstructured.RemoveNestedField(after, namesOf(at)...)
		}
	}
	d.record("", before, after)
	var spec modelv1.ModelBoxSpec
	if data, err := json.Marshal(after["spec"]); err == nil && json.Unmarshal(data, &spec) == nil {
		spec.PodTemplate = d.spec.PodTemplate
		*d.spec = spec
	}
}

// record records the changes from one object to another. What was no object is set as a whole, because it may be
// null in the request.
func (d *defaults) record(at string, from, to map[string]any) {
	names := maps.Clone(from)
	maps.Copy(names, to)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		pointer := patch.Key(at, name)
		was, now := from[name], to[name]
		inner, isObject := was.(map[string]any)
		next, becomesObject := now.(map[string]any)
		var ignored any
		switch {
		case isObject && becomesObject:
			d.record(pointer, inner, next)
		case equality.Semantic.DeepEqual(was, now):
		case now == nil:
			patch.Unset(d.ops, pointer, &ignored)
		default:
			patch.Set(d.ops, pointer, &ignored, now)
		}
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

// namesOf returns the names in a pointer.
func namesOf(at string) []string {
	names := strings.Split(at[1:], "/")
	for i, name := range names {
		names[i] = patch.Unescape(name)
	}
	return names
}

// contradictions returns the errors of values that the object may not have under its size.
func (d *defaults) contradictions() field.ErrorList {
	if !IsSize(d.spec.ResourceType) {
		return nil
	}
	now, known := d.current()
	errs := d.modelless()
	var was values
	switch {
	case d.keepsSize():
		was = valuesOf(d.old)
	case !known && d.sameSize():
		return nil // It stays as it is, without values, and is not built.
	case !known:
		names := append(slices.Sorted(maps.Keys(d.sizes)), resourceTypes...)
		return field.ErrorList{field.NotSupported(resourceTypePath, d.spec.ResourceType, names)}
	}
	is := valuesOf(d.spec)
	for _, at := range slices.Sorted(maps.Keys(is)) {
		if !isFree(at, now, known) && !now.equals(at, is[at]) && !was.equals(at, is[at]) {
			errs = append(errs, d.another(at, is[at], now[at]))
		}
	}
	return errs
}

// another returns the error of a value that is not the one of the size, nil if the size has none.
func (d *defaults) another(at string, value, ofSize any) *field.Error {
	as := ""
	if text, err := json.Marshal(ofSize); err == nil && ofSize != nil {
		as = " as " + string(text)
	}
	return field.Invalid(fieldOf(at), value, "resourceType "+string(d.spec.ResourceType)+" defines it"+as+
		"; remove it, or set resourceType: custom to use other values")
}

// equals reports whether a value is the one at a pointer.
func (v values) equals(at string, value any) bool {
	own, ok := v[at]
	return ok && same(at, value, own)
}

// ofSize reports whether a value is one of a size, or none that a client may add to them: of scheduling, and
// of a strategy beside that of the size.
func ofSize(at string, size values) bool {
	_, defined := size[at]
	in := pointerOf(at)
	return defined || in == schedulingPointer || in == strategyPointer && size.has(strategyPointer)
}

// isFree reports whether users may set a value: one that the size, if it is known, does not define.
func isFree(at string, size values, known bool) bool {
	return known && !ofSize(at, size) || !known && ofServer(at)
}

// ofServer reports whether a value is of a field that a server defines, which users without sizes may set.
func ofServer(at string) bool {
	return !slices.Contains([]string{resourcesPointer, schedulingPointer, memoryPointer, strategyPointer}, pointerOf(at))
}

// fieldOf returns the path of a field at a pointer.
func fieldOf(at string) *field.Path {
	names := namesOf(at)
	path := field.NewPath(names[0])
	for i, name := range names[1:] {
		if i == 2 && names[1] == "resources" {
			path = path.Key(name)
		} else {
			path = path.Child(name)
		}
	}
	return path
}
