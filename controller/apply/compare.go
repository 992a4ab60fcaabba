// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// A difference is a field of live that does not have its desired value.
type difference struct {
	// field is the path as kubectl explain writes it, with list items by their keys:
	// spec.template.spec.containers[name=main].image.
	field string
	// want and have are the two values; one that is unset is nil.
	want, have any
	// A patch sets the value of path to set. If that replaces a list in which other field managers have items, list
	// is its path.
	path fieldpath.Path
	set  any
	list string
}

// The API server's schema of its own kinds, and that of a kind of a CRD, of which a map is granular and a list atomic, as
// server-side apply merges them where a CRD has no other markers. So the desired state of such a kind must contain
// the defaults of the items of its lists.
var (
	schemaOfKubernetes = sync.OnceValue(func() managedfields.TypeConverter { return applyconfigurations.NewTypeConverter(scheme.Scheme) })
	schemaOfCRDs       = managedfields.NewDeducedTypeConverter()
)

// differences returns the fields of live that do not have their desired value, in the order of their names: a status with
// some of them must not change from one reconcile to the next. They are found by the library that merges a server-side
// apply in the API server, with its schema. The two objects are compared without status, which other controllers write.
//
// A field that is unset in desired, which is one that its JSON omits, is no difference: it belongs to the API server or to
// another field manager. It is one in an atomic field, which an apply replaces, and in a union, of which only one
// member may be set.
func differences(desired, live client.Object) ([]difference, error) {
	want, err := contentOf(desired)
	if err != nil {
		return nil, err
	}
	have, err := contentOf(live)
	if err != nil {
		return nil, err
	}
	have["apiVersion"], have["kind"] = want["apiVersion"], want["kind"] // Objects in the cache have none.
	c := comparison{want: want, have: have}
	if _, isCRD := desired.(*unstructured.Unstructured); !isCRD {
		setDefaults("", want)
		setDefaults("", have)
		err = c.compare(schemaOfKubernetes(), want, have)
	} else if err = c.compare(schemaOfCRDs, without(want, "metadata"), without(have, "metadata")); err == nil {
		err = c.compare(schemaOfKubernetes(), metadataOf(want), metadataOf(have))
	}
	slices.SortStableFunc(c.found, func(a, b difference) int { return cmp.Compare(a.field, b.field) })
	return c.found, err
}

func without(object map[string]any, key string) map[string]any {
	rest := maps.Clone(object)
	delete(rest, key)
	return rest
}

// metadataOf returns an object of Kubernetes with the metadata of one of a CRD.
func metadataOf(object map[string]any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object["metadata"]}
}

type comparison struct {
	want, have map[string]any
	found      []difference
}

func compare(schema managedfields.TypeConverter, want, have map[string]any) (*typed.Comparison, error) {
	desired, err := schema.ObjectToTyped(&unstructured.Unstructured{Object: want}, typed.AllowDuplicates)
	if err != nil {
		return nil, err
	}
	live, err := schema.ObjectToTyped(&unstructured.Unstructured{Object: have}, typed.AllowDuplicates)
	if err != nil {
		return nil, err
	}
	return desired.Compare(live)
}

// compare adds the differences of two objects, which are want and have or a part of them.
func (c *comparison) compare(schema managedfields.TypeConverter, want, have map[string]any) error {
	compared, err := compare(schema, want, have)
	if err != nil {
		return err
	}
	for p := range compared.Removed.All() {
		if !compared.Removed.Has(p[:len(p)-1]) && (hasEffect(p) || !isEmpty(valueOf(c.want, p))) {
			c.differ(p, compared.Added.Has(p))
		}
	}
	for p := range compared.Modified.All() {
		if !isSameQuantity(p, valueOf(c.want, p), valueOf(c.have, p)) {
			c.differ(p, false)
		}
	}
	for p := range compared.Added.All() {
		if !compared.Added.Has(p[:len(p)-1]) && c.isSurplus(p) {
			c.differ(p, true)
		}
	}
	return nil
}

// differ adds the difference of a field. An item that live lacks or has twice, in which case the other one is surplus, is set
// with its whole list: of two variables with one name, for example, the last one is in effect.
func (c *comparison) differ(p fieldpath.Path, surplus bool) {
	d := difference{field: textOf(p), have: valueOf(c.have, p), path: p.Copy()}
	if !surplus {
		d.want = valueOf(c.want, p)
	}
	if last := p[len(p)-1]; last.FieldName == nil {
		d.path = d.path[:len(p)-1]
		d.list = textOf(d.path)
	}
	d.set = valueOf(c.want, d.path)
	c.found = append(c.found, d)
}

func textOf(p fieldpath.Path) string {
	return strings.ReplaceAll(strings.TrimPrefix(p.String(), "."), `"`, "")
}

// valueOf returns the value of a field in JSON, nil if it is unset.
func valueOf(object any, p fieldpath.Path) any {
	for _, element := range p {
		switch node := object.(type) {
		case map[string]any:
			object = node[*element.FieldName]
		case []any:
			i := indexOf(node, element)
			if i < 0 {
				return nil
			}
			object = node[i]
		default:
			return nil
		}
	}
	return object
}

// indexOf returns the index of the first item of a list that has the keys, or is the value, of an element of a path.
func indexOf(list []any, element fieldpath.PathElement) int {
	return slices.IndexFunc(list, func(item any) bool {
		if element.Key == nil {
			return value.Equals(*element.Value, value.NewValueInterface(item))
		}
		members, _ := item.(map[string]any)
		return !slices.ContainsFunc(*element.Key, func(key value.Field) bool {
			return !value.Equals(key.Value, value.NewValueInterface(members[key.Name]))
		})
	})
}

// setValue sets a field of an object in JSON, or removes it if the value is nil.
func setValue(object map[string]any, p fieldpath.Path, value any) {
	last := len(p) - 1
	if parent, ok := valueOf(object, p[:last]).(map[string]any); ok && value != nil {
		parent[*p[last].FieldName] = value
	} else if ok {
		delete(parent, *p[last].FieldName)
	}
}

// mergePatch returns a JSON merge patch of live that sets and removes what differs, with its resourceVersion as
// precondition.
func mergePatch(live client.Object, found []difference) (patch []byte, replaced string, err error) {
	after, err := contentOf(live)
	if err != nil {
		return nil, "", err
	}
	before := runtime.DeepCopyJSON(after)
	unstructured.RemoveNestedField(before, "metadata", "resourceVersion")
	// A list comes after the items in it.
	slices.SortStableFunc(found, func(a, b difference) int { return len(b.path) - len(a.path) })
	for i := range found {
		setValue(after, found[i].path, found[i].set)
		if note := fmt.Sprintf("; replaced %s, with what other field managers added there", found[i].list); found[i].list != "" && !strings.Contains(replaced, note) {
			replaced += note
		}
	}
	from, err := json.Marshal(before)
	if err != nil {
		return nil, "", err
	}
	to, err := json.Marshal(after)
	if err != nil {
		return nil, "", err
	}
	patch, err = jsonpatch.CreateMergePatch(from, to)
	return patch, replaced, err
}

// isEmpty reports whether a value is a struct in which no field is set, such as "securityContext: {}".
func isEmpty(value any) bool {
	members, ok := value.(map[string]any)
	for _, member := range members {
		ok = ok && isEmpty(member)
	}
	return ok
}

// hasEffect reports whether a struct in which no field is set has another effect than no value. Server-side apply
// removes one that has none from a child together with the last field in it, although it is in the apply
// configuration, so that the child would differ for ever.
func hasEffect(p fieldpath.Path) bool {
	return isUnionMember(p) || p[len(p)-1].FieldName != nil && *p[len(p)-1].FieldName == "labelSelector"
}

// isSameQuantity reports whether a field is a quantity of a resource, and has its desired value. The API server rounds it up to
// thousandths (SetDefaults_ResourceList).
func isSameQuantity(p fieldpath.Path, want, have any) bool {
	if parent := parentOf(p); parent != "limits" && parent != "requests" && parent != "overhead" {
		return false
	}
	desired, err := resource.ParseQuantity(fmt.Sprint(want))
	live, more := resource.ParseQuantity(fmt.Sprint(have))
	if err != nil || more != nil {
		return false
	}
	same := desired.Cmp(live) == 0
	desired.RoundUp(resource.Milli)
	return same || desired.Cmp(live) == 0
}

// parentOf returns the name of the field that a path is a member of, or that of the list which has the item it is a member of.
func parentOf(p fieldpath.Path) string {
	for i := len(p) - 2; i >= 0; i-- {
		if p[i].FieldName != nil {
			return *p[i].FieldName
		}
	}
	return ""
}

// unions are the members of which at most one may be set, by the field that has them, or by the list whose items do: nil
// for all but the name. The API server refuses a second one instead of removing the first. The schema does not
// have these unions.
var unions = map[string][]string{
	"volumes":         nil,
	"env":             nil,
	"valueFrom":       nil,
	"resourceClaims":  nil,
	"postStart":       nil,
	"preStop":         nil,
	"livenessProbe":   handlers,
	"readinessProbe":  handlers,
	"startupProbe":    handlers,
	"strategy":        {"rollingUpdate"},
	"updateStrategy":  {"rollingUpdate"},
	"appArmorProfile": {"localhostProfile"},
	"seccompProfile":  {"localhostProfile"},
}

var handlers = []string{"exec", "grpc", "httpGet", "tcpSocket"}

func isUnionMember(p fieldpath.Path) bool {
	name := p[len(p)-1].FieldName
	members, ok := unions[parentOf(p)]
	return ok && name != nil && *name != "name" && (members == nil || slices.Contains(members, *name))
}

// isSurplus reports whether a field that only live has is a member of a union, and not the API server's default for a
// strategy.
func (c *comparison) isSurplus(p fieldpath.Path) bool {
	if !isUnionMember(p) {
		return false
	}
	kind, _ := valueOf(c.want, append(p[:len(p)-1:len(p)-1], fieldpath.FieldNameElement("type"))).(string)
	return *p[len(p)-1].FieldName != "rollingUpdate" || kind != "" && kind != "RollingUpdate"
}

// defaults are the API server's defaults in structs of a name, where any other value that is unset in desired is a
// difference: in atomic fields, and for the keys of items (SetDefaults_* in
// k8s.io/kubernetes/pkg/apis/core/v1/defaults.go, and the +default markers of k8s.io/api).
var defaults = map[string]map[string]any{
	"fieldRef":            {"apiVersion": "v1"},
	"fileKeyRef":          {"optional": false},
	"ports":               {"protocol": "TCP"},
	"serviceAccountToken": {"expirationSeconds": int64(3600)},
}

// setDefaults sets the defaults in the value of a field, or in the items of its list.
func setDefaults(field string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			setDefaults(name, member)
		}
		for name, member := range defaults[field] {
			if value[name] == nil {
				value[name] = member
			}
		}
		if field == "volumes" && len(value) == 1 {
			value["emptyDir"] = map[string]any{}
		}
	case []any:
		for _, item := range value {
			setDefaults(field, item)
		}
	}
}
