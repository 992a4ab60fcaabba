// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// drawnEdits tries random edits of random fields, which are drawn from the children themselves:
// each field gets the values that fields of its name have in any golden file.
func drawnEdits() {
	It("of any field of a child by another manager is reverted or left alone", func(ctx context.Context) {
		d := newEditDrawer()
		outcomes := map[string]int{}
		for range 150 {
			outcomes[d.tryChild(ctx)]++
		}
		AddReportEntry("outcomes", fmt.Sprint(outcomes))
		Expect(outcomes["right"]).To(BeNumerically(">", 30), "%v", outcomes)
	})
	It("of any field of a spec has the children of a new object", func(ctx context.Context) {
		d := newEditDrawer()
		tried := 0
		for range 60 {
			of := d.owner()
			var manifest tree
			Expect(json.Unmarshal(ownerManifests[of], &manifest)).To(Succeed())
			at := d.below(spot{path: "/spec", value: manifest["spec"]})
			c := specChange{Of: of, Patch: fmt.Appendf(nil, `[{"op":"remove","path":%q}]`, at.path)}
			By(of + " " + string(c.Patch))
			if c.try(ctx) {
				tried++
			}
		}
		Expect(tried).To(BeNumerically(">", 10))
	})
}

// editDrawer draws edits.
type editDrawer struct {
	*rand.Rand
	// values are the values of fields by name. Those of list items have the name of the list
	// with [] after it.
	values map[string][]any
	// odd are texts that replace any other.
	odd []string
}

func newEditDrawer() editDrawer {
	GinkgoHelper()
	seed := uint64(GinkgoRandomSeed())
	AddReportEntry("seed", seed)
	d := editDrawer{Rand: rand.New(rand.NewPCG(seed, 0)), values: map[string][]any{}}
	files, err := filepath.Glob("../kinds/*/testdata/*.golden.yaml")
	Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var object any
			Expect(yaml.Unmarshal([]byte(document), &object)).To(Succeed())
			d.learn("", object)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ownerManifests)) {
		var manifest any
		Expect(json.Unmarshal(ownerManifests[name], &manifest)).To(Succeed())
		d.learn("", manifest)
	}
	return d
}

func (d editDrawer) learn(name string, value any) {
	if !slices.ContainsFunc(d.values[name], func(known any) bool { return reflect.DeepEqual(known, value) }) {
		d.values[name] = append(d.values[name], value)
	}
	switch value := value.(type) {
	case tree:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			d.learn(key, value[key])
		}
	case []any:
		for _, item := range value {
			d.learn(name+"[]", item)
		}
	}
}

func (d editDrawer) owner() string {
	names := slices.Sorted(maps.Keys(ownerManifests))
	return names[d.IntN(len(names))]
}

// spot is a value in an object, by its JSON pointer.
type spot struct {
	path, name string
	value      any
}

// below returns a random value below another one.
func (d editDrawer) below(at spot) spot {
	var all []spot
	var walk func(spot)
	walk = func(at spot) {
		switch value := at.value.(type) {
		case tree:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				next := spot{at.path + "/" + strings.ReplaceAll(key, "/", "~1"), key, value[key]}
				all = append(all, next)
				walk(next)
			}
		case []any:
			for i, item := range value {
				next := spot{fmt.Sprint(at.path, "/", i), at.name + "[]", item}
				all = append(all, next)
				walk(next)
			}
		}
	}
	walk(at)
	return all[d.IntN(len(all))]
}

// edit returns a JSON patch of a value: another value, none, or something more in it.
func (d editDrawer) edit(at spot) []byte {
	op := func(op, path string, value any) []byte {
		return fmt.Appendf(nil, `[{"op":%q,"path":%q,"value":%s}]`, op, path, asJSON(value))
	}
	other := func(name string) any { return d.values[name][d.IntN(len(d.values[name]))] }
	if d.IntN(5) == 0 {
		return fmt.Appendf(nil, `[{"op":"remove","path":%q}]`, at.path)
	}
	known := len(d.values[at.name]) > 0
	switch value := at.value.(type) {
	case tree:
		if !known {
			break
		}
		more, ok := other(at.name).(tree)
		if !ok {
			break
		}
		more = runtime.DeepCopyJSON(more)
		for _, key := range []string{"name", "containerPort", "port", "mountPath", "devicePath"} { // They would make another item of it.
			if value[key] != nil && d.IntN(4) > 0 {
				more[key] = value[key]
			}
		}
		if d.IntN(2) == 0 { // Some of the fields beside its own.
			for key := range value {
				more[key] = value[key]
			}
		}
		return op("replace", at.path, more)
	case []any:
		if len(value) > 0 && d.IntN(3) == 0 {
			return op("add", at.path+"/-", value[len(value)-1])
		}
		if len(d.values[at.name+"[]"]) > 0 {
			return op("add", at.path+"/-", other(at.name+"[]"))
		}
	case string:
		if len(d.odd) > 0 && d.IntN(3) == 0 {
			return op("replace", at.path, d.odd[d.IntN(len(d.odd))])
		}
		if known && d.IntN(2) == 0 {
			return op("replace", at.path, other(at.name))
		}
		return op("replace", at.path, value+"x")
	case float64:
		return op("replace", at.path, oddNumbers[d.IntN(len(oddNumbers))])
	case int64:
		return op("replace", at.path, value+1)
	case bool:
		return op("replace", at.path, !value)
	}
	return fmt.Appendf(nil, `[{"op":"remove","path":%q}]`, at.path)
}

// tryChild tries one random edit, and returns its outcome. An edit with another outcome than
// that of field management fails with the row of the corpus.
func (d editDrawer) tryChild(ctx context.Context) string {
	GinkgoHelper()
	e := childEdit{Of: d.owner()}
	owner, err := createOwner(ctx, ownerManifests[e.Of])
	Expect(err).NotTo(HaveOccurred())
	defer deleteOwner(ctx, owner)
	controller := drive()
	controller.settled(ctx, owner)
	kinds := slices.Sorted(maps.Keys(childrenOf(ctx, owner)))
	e.Child = kinds[d.IntN(len(kinds))]
	created, err := childOf(ctx, owner, e.Child)
	Expect(err).NotTo(HaveOccurred())
	// A plain create owns the API server's defaults as well. The apply of a repair owns what is desired.
	Expect(childEdit{Merge: json.RawMessage(`{"metadata":{"labels":null}}`)}.send(ctx, created)).To(Succeed())
	controller.settled(ctx, owner)
	before, err := childOf(ctx, owner, e.Child)
	Expect(err).NotTo(HaveOccurred())
	e.Patch = d.edit(d.below(spot{path: "/spec", value: before.Object["spec"]}))
	By(fmt.Sprintf("- {of: %s, child: %s, patch: %s}", e.Of, e.Child, e.Patch))
	if err := e.send(ctx, before); err != nil {
		return "refused"
	}
	edited, err := childOf(ctx, owner, e.Child)
	Expect(err).NotTo(HaveOccurred())
	if reflect.DeepEqual(content(edited), content(before)) {
		return "no effect"
	}
	_, _, err = controller.reconcile(ctx, owner)
	if condition := ready(ctx, owner); err != nil || condition.Reason != status.ReasonProgressing {
		Expect(condition.Status).To(BeEquivalentTo("False"), "%v: %s %s", err, condition.Reason, condition.Message)
		Expect(condition.Reason).NotTo(Equal(status.ReasonProgressing))
		return "reported"
	}
	controller.settled(ctx, owner)
	after, err := childOf(ctx, owner, e.Child)
	Expect(err).NotTo(HaveOccurred())
	if nested(edited, "spec", "type") != nested(before, "spec", "type") { // Of another type, the API server frees what it chose.
		for _, child := range []*unstructured.Unstructured{before, edited, after} {
			withoutKeys(child.Object["spec"], chosenByServer...)
		}
	}
	wrong := compareOwned("spec", ownedFields(before)["f:spec"], before.Object["spec"], edited.Object["spec"], after.Object["spec"])
	Expect(wrong).To(BeEmpty(), "%s %s %s", e.Of, e.Child, e.Patch)
	return "right"
}

// ownedFields returns the fields that the operator owns in a child that no one else has written.
func ownedFields(child *unstructured.Unstructured) tree {
	GinkgoHelper()
	all := tree{}
	for _, entry := range child.GetManagedFields() {
		var fields tree
		Expect(json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields)).To(Succeed())
		maps.Copy(all, fields)
	}
	return all
}

// atomicObjects are the names of objects that are owned as a whole.
var atomicObjects = regexp.MustCompile(`(elector|Ref|claims)$`)

// compareOwned returns the fields that are neither what the operator wants nor, where it wants
// nothing, what the other manager wrote. owned is in the format of managedFields.
func compareOwned(at string, owned, before, edited, after any) []string {
	fields, _ := owned.(tree)
	if _, object := before.(tree); object && len(fields) == 0 && !atomicObjects.MatchString(at) && reflect.DeepEqual(edited, after) {
		return nil // The operator writes it without a field, so that any manager may add one.
	}
	switch {
	case owned == nil && reflect.DeepEqual(edited, after) || owned != nil && reflect.DeepEqual(before, after):
		return nil
	case owned == nil || len(fields) == 0 || reflect.TypeOf(before) != reflect.TypeOf(after):
		return []string{fmt.Sprintf("%s (owned: %t) was %s, edited %s, is %s", at, owned != nil, asJSON(before), asJSON(edited), asJSON(after))}
	}
	var wrong []string
	switch after := after.(type) {
	case tree:
		was, is := before.(tree), asObject(edited)
		for _, key := range slices.Sorted(maps.Keys(merged(was, is, after))) {
			if fields["f:"+key] != nil {
				wrong = append(wrong, compareOwned(at+"."+key, fields["f:"+key], was[key], is[key], after[key])...)
			} else if !reflect.DeepEqual(after[key], is[key]) && !reflect.DeepEqual(after[key], was[key]) {
				// A field beside the operator's may go with it: another member of a union, or a
				// default of the API server.
				wrong = append(wrong, fmt.Sprintf("%s.%s was %s, edited %s, is %s", at, key, asJSON(was[key]), asJSON(is[key]), asJSON(after[key])))
			}
		}
	case []any:
		was, _ := before.([]any)
		is, _ := edited.([]any)
		for key, inner := range fields {
			if text, ok := strings.CutPrefix(key, "k:"); ok {
				wrong = append(wrong, compareOwned(at+"["+text+"]", inner, itemWith(was, text), itemWith(is, text), itemWith(after, text))...)
			}
		}
	}
	return wrong
}

func asObject(value any) tree {
	object, _ := value.(tree)
	return object
}

func merged(objects ...tree) tree {
	all := tree{}
	for _, object := range objects {
		maps.Copy(all, object)
	}
	return all
}

// itemWith returns the first item of a list that has some fields, in JSON.
func itemWith(list []any, fields string) any {
	var wanted tree
	if err := json.Unmarshal([]byte(fields), &wanted); err != nil {
		return nil
	}
	for _, item := range list {
		has := func(key string, value any) bool { return asJSON(asObject(item)[key]) == asJSON(value) }
		matches := true
		for key, value := range wanted {
			matches = matches && has(key, value)
		}
		if matches {
			return item
		}
	}
	return nil
}
