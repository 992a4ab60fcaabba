// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
)

// A history is one ModelBox and the clients that write it. Beside it, set is the same
// object on a server without admission and without the defaults of the schema: it has
// nothing but the fields that clients set, as the API server merges them.
type history struct {
	random
	box, set *server
	helm     map[string]any // The last manifest of Helm.
	steps    []string
}

func newHistory(t testing.TB, seed uint64) *history {
	return &history{random: newRandom(seed), box: &server{t: t}, set: &server{t: t, bare: true}}
}

// clients are the ways in which the object is written, by name.
var clients = map[string]func(*history) field.ErrorList{
	"kubectl apply":                 func(h *history) field.ErrorList { return h.apply(h.manifest()) },
	"kubectl apply --server-side":   func(h *history) field.ErrorList { return h.applyServerSide("person", h.manifest()) },
	"a second manager, server-side": func(h *history) field.ErrorList { return h.applyServerSide("program", h.part()) },
	"helm upgrade": func(h *history) field.ErrorList {
		next := h.manifest()
		change, err := jsonpatch.CreateMergePatch(marshal(h.box.t, manifest(h.helm)), marshal(h.box.t, manifest(next)))
		must(err)
		errs := h.update("helm", func() field.ErrorList {
			if h.box.live == nil {
				return h.box.update(manifest(next), "helm")
			}
			return h.box.mergePatch(string(change), "helm")
		})
		if len(errs) == 0 {
			h.helm = next
		}
		return errs
	},
	"kubectl edit": func(h *history) field.ErrorList {
		next := clone(h.box.live)
		for range 1 + h.IntN(2) {
			h.edit(next["spec"].(map[string]any))
		}
		return h.write(next, "kubectl-edit")
	},
	"kubectl replace": func(h *history) field.ErrorList {
		next := clone(h.box.live)
		next["spec"] = clone(h.manifest())
		return h.write(next, "kubectl-replace")
	},
	"kubectl set env": func(h *history) field.ErrorList {
		next := clone(h.box.live)
		next["spec"].(map[string]any)["envs"] = []any{map[string]any{"name": "A", "value": strconv.Itoa(h.IntN(9))}}
		return h.write(next, "kubectl-set")
	},
	"kubectl scale": func(h *history) field.ErrorList {
		next := clone(h.box.live)
		next["spec"].(map[string]any)["replicas"] = h.IntN(9)
		return h.write(next, "kubectl-scale")
	},
}

// write is an update of the whole object.
func (h *history) write(next map[string]any, who string) field.ErrorList {
	return h.update(who, func() field.ErrorList { return h.box.update(next, who) })
}

// manifest is a spec as it stands in a file, sometimes with a field that says nothing.
func (h *history) manifest() map[string]any {
	spec := h.spec()
	for _, name := range []string{"name", "resourceType", "serviceType"} {
		if spec[name] == nil {
			h.maybe(10, spec, name, func() any { return "" })
		}
	}
	for _, name := range []string{"readinessProbe", "livenessProbe", "startupProbe", "resources"} {
		if spec[name] == nil {
			h.maybe(10, spec, name, func() any { return map[string]any{} })
		}
	}
	return spec
}

// part is what a manager sets that does not have the whole object.
func (h *history) part() map[string]any {
	spec := h.manifest()
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		if h.chance(60) {
			delete(spec, name)
		}
	}
	return spec
}

// edit changes one thing in a spec as it is shown.
func (h *history) edit(spec map[string]any) {
	from := h.manifest()
	name := one(h.random, slices.Sorted(maps.Keys(from))...)
	switch h.IntN(5) {
	case 0:
		h.editResources(spec)
	case 1:
		h.editPorts(spec)
	case 2:
		if name != "image" {
			delete(spec, name)
		}
	default:
		spec[name] = from[name]
	}
}

func (h *history) editResources(spec map[string]any) {
	resources, _ := spec["resources"].(map[string]any)
	list, _ := resources[one(h.random, "limits", "requests")].(map[string]any)
	name := one(h.random, "cpu", "memory")
	switch {
	case list == nil:
		spec["resources"] = h.resources()
	case h.chance(30):
		delete(list, name)
	default:
		list[name] = one(h.random, "1", "2", "2Gi", "8Gi")
	}
}

func (h *history) editPorts(spec map[string]any) {
	ports, _ := spec["ports"].([]any)
	if len(ports) == 0 {
		spec["ports"] = h.ports()
		return
	}
	port := ports[h.IntN(len(ports))].(map[string]any)
	switch h.IntN(4) {
	case 0:
		port["port"] = one(h.random, 80, 81, 8080, 53)
	case 1:
		port["nodePort"] = 30000 + h.IntN(3)
	case 2:
		delete(port, one(h.random, "name", "targetPort", "nodePort"))
	case 3:
		spec["ports"] = ports[1:]
	}
}

// apply is kubectl apply: what is in the manifest is set, also where it changes nothing.
func (h *history) apply(spec map[string]any) field.ErrorList {
	return h.update("kubectl-client-side-apply", func() field.ErrorList { return h.box.clientSideApply(spec) }, spec)
}

func (h *history) applyServerSide(who string, spec map[string]any) field.ErrorList {
	errs := h.box.applyAs(who, spec)
	h.set.applyAs(who, spec)
	withoutNull(specOf(h.set.live).(map[string]any))
	return errs
}

// withoutNull makes the objects empty that an apply made null, which has its manager own
// them as empty ones.
func withoutNull(object map[string]any) {
	for name, value := range object {
		switch inner, ok := value.(map[string]any); {
		case ok && name != "podTemplate":
			withoutNull(inner)
		case value == nil && slices.Contains([]string{"readinessProbe", "livenessProbe", "startupProbe", "tcpSocket", "resources", "limits", "requests"}, name):
			object[name] = map[string]any{}
		}
	}
}

// update is any other write: what differs from what is stored is set. A client that
// writes what is there already does not come to own it.
func (h *history) update(who string, write func() field.ErrorList, also ...map[string]any) field.ErrorList {
	stored := specOf(h.box.live)
	errs := write()
	spec, _ := changed(specOf(h.box.sent), stored, specOf(h.set.live))
	next := manifest(spec.(map[string]any))
	if h.set.live != nil {
		next["metadata"] = clone(h.set.live)["metadata"]
	}
	for _, manifest := range also {
		overlay(next["spec"].(map[string]any), manifest)
	}
	withoutNull(next["spec"].(map[string]any))
	h.set.update(next, who)
	return errs
}

func specOf(object map[string]any) any {
	if object == nil {
		return nil
	}
	return object["spec"]
}

// changed is what of next is in set, or is not as in stored; and whether that is
// anything.
func changed(next, stored, set any) (any, bool) {
	switch next := next.(type) {
	case map[string]any:
		storedObject, _ := stored.(map[string]any)
		setObject, _ := set.(map[string]any)
		out := map[string]any{}
		for name, value := range next {
			if name == "podTemplate" {
				out[name] = value // Nothing in it is derived.
			} else if part, ok := changed(value, storedObject[name], setObject[name]); ok {
				out[name] = part
			}
		}
		return out, len(out) > 0 || set != nil || len(next) == 0 && storedObject == nil
	case []any:
		return changedItems(next, stored, set), set != nil || !cmp.Equal(next, stored)
	}
	return next, set != nil || !cmp.Equal(next, stored)
}

// changedItems is the same of a list. Of ports, an item that is as in stored, and not in set, is
// not set.
func changedItems(next []any, stored, set any) []any {
	out := []any{}
	for _, item := range next {
		port, ok := item.(map[string]any)
		if !ok || port["port"] == nil {
			out = append(out, item)
			continue
		}
		part, isSet := changed(port, samePort(stored, port), samePort(set, port))
		if isSet {
			fields := part.(map[string]any)
			fields["port"], fields["protocol"] = port["port"], protocolOf(port)
			out = append(out, fields)
		}
	}
	return out
}

// samePort is the port of a list with the keys of another port.
func samePort(list any, port map[string]any) any {
	items, _ := list.([]any)
	for _, item := range items {
		if item, ok := item.(map[string]any); ok && fmt.Sprint(item["port"]) == fmt.Sprint(port["port"]) && protocolOf(item) == protocolOf(port) {
			return item
		}
	}
	return nil
}

func protocolOf(port map[string]any) any {
	if port["protocol"] == nil {
		return "TCP"
	}
	return port["protocol"]
}

// overlay writes the fields of a manifest over those of a spec.
func overlay(spec, manifest map[string]any) {
	for name, value := range clone(manifest) {
		inner, ok := value.(map[string]any)
		if below, object := spec[name].(map[string]any); ok && object {
			overlay(below, inner)
			continue
		}
		if list, ok := value.([]any); ok && name == "ports" {
			overlayPorts(spec, list)
			continue
		}
		spec[name] = value
	}
}

func overlayPorts(spec map[string]any, list []any) {
	for _, item := range list {
		if port, ok := samePort(spec["ports"], item.(map[string]any)).(map[string]any); ok {
			overlay(port, item.(map[string]any))
		}
	}
}

// expected is what a new object gets that has nothing but what clients set, and what is
// refused of it.
func (h *history) expected() (*server, field.ErrorList) {
	fresh := &server{t: h.box.t}
	spec, _ := clone(h.set.live)["spec"].(map[string]any)
	h.withoutUnowned(spec, fieldpath.MakePathOrDie("spec"))
	// A preset that becomes custom keeps its values until a client sets some.
	sent, _ := h.box.sent["spec"].(map[string]any)
	withoutRemoved(spec, sent)
	if spec["resourceType"] == "custom" && spec["resources"] == nil && sent["resources"] != nil && !modelbox.IsSize(h.box.box().Spec.ResourceType) {
		spec["resources"] = sent["resources"]
	}
	return fresh, fresh.update(manifest(spec), "client")
}

// withoutRemoved removes what was not sent: an apply removes what no other manager owns,
// though it may be in the manifest of the last client-side apply, and makes an object
// null whose last field it takes out.
func withoutRemoved(object, sent map[string]any) {
	for name := range object {
		inner, ok := object[name].(map[string]any)
		switch value := sent[name].(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			if ok && name != "podTemplate" {
				withoutRemoved(inner, value)
			}
		}
	}
}

// withoutUnowned removes objects that became empty, and that no manager owns: a client
// took out what was in them.
func (h *history) withoutUnowned(object map[string]any, at fieldpath.Path) {
	for name, value := range object {
		path := append(at.Copy(), fieldpath.FieldNameElement(name))
		inner, ok := value.(map[string]any)
		if name == "podTemplate" || !ok && value != nil {
			continue
		}
		h.withoutUnowned(inner, path)
		switch empty := len(inner) == 0; {
		case empty && !h.owned(path):
			delete(object, name)
		case empty: // An apply that takes out the last field makes it null.
			object[name] = map[string]any{}
		}
	}
}

// owned reports whether a client owns an empty object, or has it in its manifest.
func (h *history) owned(path fieldpath.Path) bool {
	box := decode(h.box.t, marshal(h.box.t, h.box.sent))
	var applied any
	if text := box.Annotations[corev1.LastAppliedConfigAnnotation]; text != "" {
		must(unmarshal([]byte(text), &applied))
	}
	for _, element := range path {
		object, _ := applied.(map[string]any)
		applied = object[*element.FieldName]
	}
	if object, ok := applied.(map[string]any); ok && len(object) == 0 {
		return true
	}
	for _, entry := range box.ManagedFields {
		set := &fieldpath.Set{}
		must(set.FromJSON(entry.FieldsV1.GetRawReader()))
		if set.Has(path) {
			return true
		}
	}
	return false
}

// step writes once and compares.
func (h *history) step(name string) error {
	before, set := h.box.live, h.set.live
	errs := clients[name](h)
	h.steps = append(h.steps, fmt.Sprintf("%s sends %s", name, marshal(h.box.t, specOf(h.box.sent))))
	fresh, want := h.expected()
	if before != nil && cmp.Equal(specOf(before), specOf(h.box.sent)) {
		return nil // The webhook is called for a changed spec.
	}
	if before != nil && h.samePods(h.box.sent, before) {
		if len(errs) > 0 {
			h.set.live = set
		}
		return h.unchanged(before, fresh, want, errs)
	}
	if diff := cmp.Diff(places(want), places(errs)); diff != "" {
		return fmt.Errorf("errors (-of a new object +got):\n%s", diff)
	}
	if len(errs) > 0 {
		h.set.live = set
		return nil
	}
	if diff := diff(h.box.t, fresh.box().Spec, h.box.box().Spec); diff != "" {
		return fmt.Errorf("spec (-of a new object +got):\n%s", diff)
	}
	h.settle()
	return nil
}

// unchanged compares after an update that changes no field of the pod template, although it may
// change who owns one: the pods stay as they are, and all else is as in a new object.
func (h *history) unchanged(before map[string]any, fresh *server, want, errs field.ErrorList) error {
	if len(errs) > 0 {
		if len(want) == 0 {
			return fmt.Errorf("only a new object is accepted: %v", errs)
		}
		return nil
	}
	got := h.box.box()
	if diff := diff(h.box.t, podsOf(h.box.t, before), podsOf(h.box.t, h.box.live)); diff != "" {
		return fmt.Errorf("the pods restart for nothing (-before +got):\n%s", diff)
	}
	if wanted := fresh.box(); len(want) == 0 {
		if diff := diff(h.box.t, othersOf(wanted), othersOf(got)); diff != "" {
			return fmt.Errorf("other fields (-of a new object +got):\n%s", diff)
		}
	}
	h.settle()
	return nil
}

// samePods reports whether two objects have the same pods, and the same fields that those are
// derived from.
func (h *history) samePods(a, b map[string]any) bool {
	first, second := decode(h.box.t, marshal(h.box.t, a)), decode(h.box.t, marshal(h.box.t, b))
	return completed(first).Spec.ResourceType == completed(second).Spec.ResourceType &&
		completed(first).Spec.DefaultProbes == completed(second).Spec.DefaultProbes &&
		diff(h.box.t, podsOf(h.box.t, a), podsOf(h.box.t, b)) == ""
}

// podsOf is what an object's pod template is built from.
func podsOf(t testing.TB, object map[string]any) any {
	t.Helper()
	spec := completed(decode(t, marshal(t, object))).Spec
	ports := modelv1.ContainerPorts(spec.Ports)
	fields := tree(t, spec).(map[string]any)
	for _, name := range []string{
		"replicas", "resourceType", "rollingUpdate", "strategy", "progressDeadlineSeconds", "ports", "serviceType", "defaultProbes", "paused",
	} {
		delete(fields, name)
	}
	return []any{fields, ports}
}

// completed is an object as its controller sees it.
func completed(box *modelv1.ModelBox) *modelv1.ModelBox {
	modelbox.DefaultStored(box)
	return box
}

// othersOf are the fields that are not in the pod template, nor derived from those that are.
func othersOf(box *modelv1.ModelBox) *modelv1.ModelBoxSpec {
	spec := &modelv1.ModelBoxSpec{
		Replicas: box.Spec.Replicas, RollingUpdate: box.Spec.RollingUpdate, Strategy: box.Spec.Strategy,
		ServiceType: box.Spec.ServiceType, DefaultProbes: box.Spec.DefaultProbes, Paused: box.Spec.Paused,
	}
	for _, port := range box.Spec.Ports {
		port.Name = ""
		spec.Ports = append(spec.Ports, port)
	}
	return spec
}

// settle gives the fields that a client set to nothing the value that was stored, which
// they have for every later client. And it adds the fields that another client removed
// from the object and that have again, as a default, the value in the manifest of the
// last client-side apply: they cannot be told from those which the manifest sets.
func (h *history) settle() {
	set, stored := h.set.live["spec"].(map[string]any), h.box.live["spec"].(map[string]any)
	for name, value := range set {
		if value == "" {
			set[name] = stored[name]
		}
	}
	var applied map[string]any
	annotations, _ := h.box.live["metadata"].(map[string]any)["annotations"].(map[string]any)
	if text, ok := annotations[corev1.LastAppliedConfigAnnotation].(string); ok {
		must(unmarshal([]byte(text), &applied))
		adopt(set, specOf(applied), stored)
	}
}

// adopt adds to set what of applied is in stored.
func adopt(set map[string]any, applied, stored any) {
	from, _ := applied.(map[string]any)
	have, _ := stored.(map[string]any)
	for name, value := range from {
		inner, object := value.(map[string]any)
		switch {
		case have[name] == nil:
		case object && len(inner) > 0:
			below, ok := set[name].(map[string]any)
			if !ok {
				below = map[string]any{}
			}
			if adopt(below, inner, have[name]); len(below) > 0 {
				set[name] = below
			}
		case set[name] == nil && (object || same(value, have[name])):
			set[name] = value
		}
	}
}

// same reports whether two scalars are equal, as quantities where they are quantities.
func same(a, b any) bool {
	p, errP := resource.ParseQuantity(fmt.Sprint(a))
	q, errQ := resource.ParseQuantity(fmt.Sprint(b))
	if errP == nil && errQ == nil {
		return p.Cmp(q) == 0
	}
	return fmt.Sprint(a) == fmt.Sprint(b)
}

// again creates the object from what is stored, as a restore does: it is admitted, and the same.
func (h *history) again() error {
	if h.box.live == nil {
		return nil
	}
	stored, fresh := clone(h.box.live), &server{t: h.box.t}
	delete(stored["metadata"].(map[string]any), "managedFields")
	if errs := fresh.update(stored, "restore"); len(errs) > 0 {
		return fmt.Errorf("what is stored cannot be created again: %v", errs)
	}
	if diff := diff(h.box.t, h.box.box().Spec, fresh.box().Spec); diff != "" {
		return fmt.Errorf("what is created again (-stored +got):\n%s", diff)
	}
	return nil
}

// Whatever the history, the spec is what a new object gets that has only the fields
// which clients set, and it can be created again.
func TestHistories(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(maps.Keys(clients))
	steps, refused := 0, 0
	for _, seed := range historySeeds(t) {
		h := newHistory(t, seed)
		for len(h.steps) < 8 {
			name := one(h.random, names...)
			if h.box.live == nil && !strings.HasPrefix(name, "kubectl apply") && name != "helm upgrade" {
				continue
			}
			if err := h.step(name); err != nil {
				t.Fatalf("seed %d: after\n%s\n%v", seed, strings.Join(h.steps, "\n"), err)
			}
			if err := h.again(); err != nil {
				t.Fatalf("seed %d: after\n%s\n%v", seed, strings.Join(h.steps, "\n"), err)
			}
			steps++
			if h.box.live == nil {
				h.box, h.set, h.helm, h.steps = &server{t: t}, &server{t: t, bare: true}, nil, nil // Nothing was stored.
				refused++
			}
		}
	}
	t.Logf("%d steps, %d of them creations that were refused", steps, refused)
}

// historySeeds are those of the corpus, and as many more as -seeds says.
func historySeeds(t *testing.T) []uint64 {
	t.Helper()
	text, err := os.ReadFile("testdata/histories.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []uint64
	for word := range strings.FieldsSeq(string(text)) {
		seed, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, seed)
	}
	for seed := range *seeds * 3 {
		out = append(out, *firstSeed+seed)
	}
	return out
}
