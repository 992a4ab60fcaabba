// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The bounds of status.children[].rewritten.
const maxRewritten, maxPath = 3, 256

// converters return the converter of Kubernetes' own kinds, which needs the schema of all of them
// in memory, and so only once something differs. A kind that has no Go type here is compared
// without a schema: a path ends at a list.
var kubernetes = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(clientgoscheme.Scheme) })

// rewritten returns the paths of fields that do not have their desired value in the response to a
// write, because admission changed or removed them. What the API server itself completes or rounds
// is no such field.
func rewritten(desired, answer client.Object) []string {
	if isKept(desired, answer) {
		return nil
	}
	found := lacking(compare(desired, answer))
	if found.Empty() {
		return nil
	}
	found = found.Intersection(lacking(compare(defaulted(desired), answer)))
	paths := pathsOf(found.Difference(completed(found, desired, answer)))
	for i := range paths {
		paths[i] = rules.Cut(paths[i], maxPath)
	}
	return slices.Clip(paths[:min(len(paths), maxRewritten)])
}

// isKept reports whether an answer has all of a desired state, so that no schema is needed to tell what
// was rewritten. Nearly every answer is so.
func isKept(desired, answer client.Object) bool {
	have := cache.ValueOf(answer).AsMap()
	return cache.ValueOf(desired).AsMap().Iterate(func(key string, want value.Value) bool {
		in, found := have.Get(key)
		return slices.Contains(ignored, key) || found && contains(in, want)
	})
}

// completed returns those of some differing fields whose desired value is a part of the value in
// the response: one that is merged as a whole, in which the API server has set defaults.
func completed(differing *fieldpath.Set, desired, answer client.Object) *fieldpath.Set {
	out := fieldpath.NewSet()
	want, err := toTyped(desired)
	have, err2 := toTyped(answer)
	if err != nil || err2 != nil {
		return out
	}
	for path := range differing.All() {
		only := fieldpath.NewSet(path)
		if contains(have.ExtractItems(only).AsValue(), want.ExtractItems(only).AsValue()) {
			out.Insert(path.Copy())
		}
	}
	return out
}

// contains reports whether a value has all that another one has, in lists of the same length. Null is
// no value, as the zero creationTimestamp of a desired state is.
func contains(have, want value.Value) bool {
	switch {
	case want.IsNull():
		return true
	case want.IsMap():
		return have.IsMap() && want.AsMap().Iterate(func(key string, member value.Value) bool {
			in, found := have.AsMap().Get(key)
			return found && contains(in, member)
		})
	case want.IsList():
		if !have.IsList() || have.AsList().Length() != want.AsList().Length() {
			return false
		}
		for i := range want.AsList().Length() {
			if !contains(have.AsList().At(i), want.AsList().At(i)) {
				return false
			}
		}
		return true
	}
	return value.Equals(have, want)
}

// defaulted returns a desired state with Kubernetes' defaults of a pod template.
func defaulted(desired client.Object) client.Object {
	out := desired.DeepCopyObject().(client.Object)
	if template := kinds.PodTemplate(out); template != nil {
		whole := &corev1.PodTemplate{Template: *template}
		corev1defaults.SetObjectDefaults_PodTemplate(whole)
		*template = whole.Template
	}
	return out
}

// Rewritten returns, in a sentence that is empty if there are none, the fields of children that
// admission rewrote.
func Rewritten(children []modelv1.ChildStatus) string {
	var parts []string
	for i := range children {
		if paths := children[i].Rewritten; len(paths) > 0 {
			parts = append(parts, fmt.Sprintf("%s %s rewritten by admission", children[i].Kind, strings.Join(paths, ", ")))
		}
	}
	return strings.Join(parts, "; ")
}

// lacking returns what the second of two compared states does not have of the first, or not with
// that value.
func lacking(c *typed.Comparison) *fieldpath.Set {
	if c == nil {
		return fieldpath.NewSet()
	}
	return c.Modified.Union(c.Removed).Leaves()
}

// differing returns the paths of the fields of a desired state that another state does not have, or
// not with that value.
func differing(desired, live client.Object) []string { return pathsOf(lacking(compare(desired, live))) }

// changed returns the paths of the fields that differ between two versions of an object.
func changed(before, after client.Object) []string {
	c := compare(before, after)
	if c == nil {
		return nil
	}
	return pathsOf(c.Modified.Union(c.Removed).Union(c.Added))
}

func compare(a, b client.Object) *typed.Comparison {
	left, err := toTyped(a)
	if err != nil {
		return nil
	}
	right, err := toTyped(b)
	if err != nil {
		return nil
	}
	comparison, err := left.Compare(right)
	if err != nil {
		return nil
	}
	return comparison
}

func toTyped(obj client.Object) (*typed.TypedValue, error) {
	if content, ok := obj.(*unstructured.Unstructured); ok {
		return managedfields.NewDeducedTypeConverter().ObjectToTyped(content, typed.AllowDuplicates)
	}
	return kubernetesTyped(obj, typed.AllowDuplicates)
}

func kubernetesTyped(obj client.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	kind, err := apiutil.GVKForObject(obj, clientgoscheme.Scheme)
	if err != nil {
		return nil, err
	}
	named := obj.DeepCopyObject().(client.Object)
	named.GetObjectKind().SetGroupVersionKind(kind)
	return kubernetes().ObjectToTyped(named, options...)
}

// hasDuplicates reports whether a list of an object, which its schema merges by keys, has an item
// twice. The API server stores such an object, but answers an apply of it with 500.
func hasDuplicates(obj client.Object) bool {
	if _, untyped := obj.(*unstructured.Unstructured); untyped {
		return false
	}
	_, err := kubernetesTyped(obj)
	return err != nil
}

// pathsOf returns the leaves of a set, as kubectl explain writes them, but what each write changes.
func pathsOf(set *fieldpath.Set) []string {
	var paths []string
	for path := range set.Leaves().All() {
		text := strings.TrimPrefix(path.String(), ".")
		if !slices.ContainsFunc(ignored, func(prefix string) bool { return strings.HasPrefix(text, prefix) }) {
			paths = append(paths, text)
		}
	}
	return paths
}

var ignored = []string{"apiVersion", "kind", "status", "metadata.managedFields", "metadata.resourceVersion", "metadata.generation",
	"metadata.uid", "metadata.creationTimestamp"}

// first returns the first of some paths, and says so if there is none.
func first(paths []string) string {
	if len(paths) == 0 {
		return "a field"
	}
	return paths[0]
}
