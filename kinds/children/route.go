// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

var httpRouteKind = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}

var route = Block{
	Field:    "route",
	Kind:     httpRouteKind,
	Provider: "the Gateway API",
	Desired:  httpRoute,
	Validate: validateRoute,
	Report:   reportRoute,
	Status:   routeStatus,
}

// httpRoute sets the defaults of the CRD in the items of lists, because lists are compared as a whole.
func httpRoute(o *Object) kinds.Object {
	if o.Route == nil || len(o.Ports) == 0 {
		return nil
	}
	gateway := map[string]any{"group": httpRouteKind.Group, "kind": "Gateway", "name": o.Route.Gateway.Name}
	setText(gateway, "namespace", o.Route.Gateway.Namespace)
	setText(gateway, "sectionName", o.Route.Gateway.Listener)
	hosts := make([]any, len(o.Route.Hosts))
	for i, host := range o.Route.Hosts {
		hosts[i] = string(host)
	}
	return o.unstructured(httpRouteKind, map[string]any{
		"parentRefs": []any{gateway},
		"hostnames":  hosts,
		"rules": []any{map[string]any{
			"matches":     []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": cmp.Or(o.Route.Path, "/")}}},
			"backendRefs": backends(o),
		}},
	})
}

// backends returns the Service of the object with what remains of 100 percent, or with the default of
// the CRD if nothing is split, and then those of split.
func backends(o *Object) []any {
	backend := func(name string, weight int32) any {
		return map[string]any{"group": "", "kind": "Service", "name": name, "port": int64(o.Ports[0].Port), "weight": int64(weight)}
	}
	own := o.ServiceName(o.Meta.Name)
	if len(o.Route.Split) == 0 {
		return []any{backend(own, 1)}
	}
	remains, out := int32(100), []any{nil}
	for _, s := range o.Route.Split {
		remains -= s.Weight
		out = append(out, backend(s.Name, s.Weight))
	}
	out[0] = backend(own, remains)
	return out
}

var (
	pathCharacters = regexp.MustCompile(`^(/([-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*)?$`)
	badSegments    = regexp.MustCompile(`//|/[.][.]?(/|$)|%2[fF]`)
)

func validateRoute(path *field.Path, o *Object) field.ErrorList {
	r := o.Route
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	switch {
	case len(o.Ports) == 0:
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "needs a port to send requests to; add one to spec.ports, or remove spec.route"))
	case o.Ports[0].ProtocolOrDefault() != corev1.ProtocolTCP:
		errs = append(errs, field.Invalid(path, field.OmitValueType{}, "needs a first port of the protocol TCP in spec.ports; put one first, or remove spec.route"))
	}
	if n := len(r.Hosts); n == 0 || n > modelv1.MaxHosts {
		errs = append(errs, field.Invalid(path.Child("hosts"), n, fmt.Sprintf("must have 1 to %d items", modelv1.MaxHosts)))
	}
	for i, host := range r.Hosts[:min(len(r.Hosts), modelv1.MaxHosts)] {
		for _, message := range validation.IsDNS1123Subdomain(strings.TrimPrefix(string(host), "*.")) {
			errs = append(errs, field.Invalid(path.Child("hosts").Index(i), host, message))
		}
	}
	if badSegments.MatchString(r.Path) {
		errs = append(errs, field.Invalid(path.Child("path"), r.Path, "must not contain an empty segment, a segment . or .., or %2F"))
	}
	errs = append(errs, validatePath(path.Child("path"), r.Path)...)
	errs = append(errs, validateSplit(path.Child("split"), o.ServiceName(o.Meta.Name), r.Split)...)
	at := path.Child("gateway")
	errs = append(errs, names(at.Child("name"), r.Gateway.Name, true, validation.IsDNS1123Subdomain)...)
	errs = append(errs, names(at.Child("namespace"), r.Gateway.Namespace, false, validation.IsDNS1123Label)...)
	return append(errs, names(at.Child("listener"), r.Gateway.Listener, false, validation.IsDNS1123Subdomain)...)
}

// validateSplit validates what is split from the requests to the Service of an object, which has a name.
func validateSplit(path *field.Path, own string, split []modelv1.RouteShare) (errs field.ErrorList) {
	if len(split) > modelv1.MaxSplit {
		return field.ErrorList{field.TooMany(path, len(split), modelv1.MaxSplit)}
	}
	sum, seen := int32(0), sets.New[string]()
	for i, s := range split {
		at := path.Index(i)
		weight := rules.Between(at.Child("weight"), &s.Weight, 1, 100)
		errs = append(errs, append(weight, rules.Label(at.Child("name"), s.Name)...)...)
		if len(weight) == 0 { // Otherwise one wrong number would have two errors.
			sum += s.Weight
		}
		switch {
		case s.Name == own:
			errs = append(errs, field.Invalid(at.Child("name"), s.Name, "is the Service of the object itself, which has what remains of 100 percent; remove it"))
		case seen.Has(s.Name):
			errs = append(errs, field.Duplicate(at.Child("name"), s.Name))
		}
		seen.Insert(s.Name)
	}
	if sum > 100 {
		errs = append(errs, field.Invalid(path, sum, "the weights must be at most 100 together"))
	}
	return errs
}

func names(path *field.Path, name string, required bool, check func(string) []string) (errs field.ErrorList) {
	if name == "" && !required {
		return nil
	}
	for _, message := range check(name) {
		errs = append(errs, field.Invalid(path, name, message))
	}
	return errs
}

// validatePath validates the path of a URL, which may be empty.
func validatePath(path *field.Path, value string) field.ErrorList {
	if len(value) > modelv1.MaxPath {
		return field.ErrorList{field.TooLong(path, "", modelv1.MaxPath)}
	}
	if !pathCharacters.MatchString(value) {
		return field.ErrorList{field.Invalid(path, value, "must be a path, such as /v1, of the characters of RFC 3986")}
	}
	return nil
}

// reportRoute returns why requests do not come through the Gateway: what its controller says, or
// that none says anything.
func reportRoute(live kinds.Object) string {
	conditions := routeConditions(live)
	for _, c := range conditions {
		if c.Status == metav1.ConditionFalse {
			return fmt.Sprintf("HTTPRoute %q: %s is False (%.100s): %.300s", live.GetName(), c.Type, c.Reason, c.Message)
		}
	}
	unsaid := func(c metav1.Condition) bool { return isAccepted(c) && c.ObservedGeneration == 0 }
	switch {
	case !slices.ContainsFunc(conditions, isAccepted):
		return fmt.Sprintf("HTTPRoute %q: no Gateway has accepted it yet; the Gateway of spec.route must exist, and allow routes from this namespace", live.GetName())
	case slices.ContainsFunc(conditions, unsaid):
		return fmt.Sprintf("HTTPRoute %q: a Gateway has accepted it, but sets no observedGeneration: whether it was this spec is not known", live.GetName())
	}
	return ""
}

func routeStatus(o *Object, live kinds.Object, into *modelv1.WorkloadStatus) {
	isName := func(host modelv1.Host) bool { return !strings.HasPrefix(string(host), "*") }
	i := slices.IndexFunc(o.Route.Hosts, isName)
	if i < 0 || !slices.ContainsFunc(routeConditions(live), isAccepted) {
		return
	}
	scheme := "http://"
	if o.Route.TLS {
		scheme = "https://"
	}
	into.URL = scheme + string(o.Route.Hosts[i]) + cmp.Or(o.Route.Path, "/")
}

func isAccepted(c metav1.Condition) bool {
	return c.Type == "Accepted" && c.Status == metav1.ConditionTrue
}

// routeConditions returns the conditions Accepted and ResolvedRefs of all Gateways for the current
// spec of an HTTPRoute, and those that do not say for which one.
func routeConditions(live kinds.Object) (current []metav1.Condition) {
	var status struct {
		Parents []struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"parents"`
	}
	content, _, _ := unstructured.NestedMap(live.(*unstructured.Unstructured).Object, "status")
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status) // The CRD has a schema.
	for _, parent := range status.Parents {
		for _, c := range parent.Conditions {
			if (c.Type == "Accepted" || c.Type == "ResolvedRefs") && (c.ObservedGeneration == 0 || c.ObservedGeneration >= live.GetGeneration()) {
				current = append(current, c)
			}
		}
	}
	return current
}
