// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/quantity"
)

// Resources validates the compute resources of a container. Nil is valid. Claims
// validates the claims.
func Resources(path *field.Path, r *corev1.ResourceRequirements) field.ErrorList {
	if r == nil {
		return nil
	}
	errs := quantities(path, "limits", r.Limits)
	errs = append(errs, quantities(path, "requests", r.Requests)...)
	errs = append(errs, withinLimits(path, r)...)
	errs = append(errs, hugePages(path, r)...)
	// The lists are maps. Errors are sorted, so that they are the same for the same object.
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	return errs
}

func quantities(path *field.Path, of string, list corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for name, quantity := range list {
		if !isContainerResourceName(name) {
			errs = append(errs, field.Invalid(path.Child(of).Key(string(name)), string(name),
				"must be cpu, memory, ephemeral-storage, hugepages-<size>, or a name with a domain such as example.com/gpu"))
			continue
		}
		if detail := badQuantity(name, quantity); detail != "" {
			errs = append(errs, field.Invalid(path.Child(of).Key(string(name)), quantity.String(), detail))
		}
	}
	return errs
}

func badQuantity(name corev1.ResourceName, quantity resource.Quantity) string {
	switch {
	case quantity.Sign() < 0:
		return "must be greater than or equal to 0"
	case isExtended(name) && quantity.MilliValue()%1000 != 0:
		return "must be an integer"
	case isHugePages(name) && !isMultiple(name, quantity):
		return "must be a multiple of the page size"
	}
	return ""
}

func isContainerResourceName(name corev1.ResourceName) bool {
	switch {
	case len(validation.IsQualifiedName(string(name))) > 0:
		return false
	case !strings.Contains(string(name), "/"):
		return name == corev1.ResourceCPU || name == corev1.ResourceMemory ||
			name == corev1.ResourceEphemeralStorage || isHugePages(name)
	case isExtended(name):
		// In a quota, the resource is called requests.<name>, which must be valid as well.
		return !strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) &&
			len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
	}
	return true
}

// Device returns the name of an extended resource that a container requires, the first one in
// alphabetical order, or "device" if it has claims only. It returns "" if it requires none.
func Device(r *corev1.ResourceRequirements) string {
	if r == nil {
		return ""
	}
	device := ""
	for name, limit := range r.Limits {
		if isExtended(name) && limit.Sign() > 0 && (device == "" || string(name) < device) {
			device = string(name)
		}
	}
	if device == "" && len(r.Claims) > 0 {
		return "device"
	}
	return device
}

// isExtended reports whether a resource is an extended resource, which has a domain other
// than kubernetes.io.
func isExtended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func isMultiple(name corev1.ResourceName, amount resource.Quantity) bool {
	page, err := quantity.Parse(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	return err == nil && page.Sign() > 0 && page.MilliValue()%1000 == 0 && amount.Value()%page.Value() == 0
}

// withinLimits compares requests with limits. Huge pages and extended resources cannot be
// overcommitted: they must have a limit equal to the request.
func withinLimits(path *field.Path, r *corev1.ResourceRequirements) field.ErrorList {
	var errs field.ErrorList
	for name, request := range r.Requests {
		limit, limited := r.Limits[name]
		exact := isExtended(name) || isHugePages(name)
		switch {
		case !limited && exact:
			errs = append(errs, field.Required(path.Child("limits").Key(string(name)), "must be set to the request, because this resource cannot be overcommitted"))
		case limited && exact && compare(request, limit) != 0:
			errs = append(errs, field.Invalid(path.Child("requests").Key(string(name)), request.String(),
				fmt.Sprintf("must be equal to the limit of %s", limit.String())))
		case limited && compare(request, limit) > 0:
			errs = append(errs, field.Invalid(path.Child("requests").Key(string(name)), request.String(),
				fmt.Sprintf("must be less than or equal to the limit of %s", limit.String())))
		}
	}
	return errs
}

// compare compares quantities as the API server stores them, rounded up to thousandths.
func compare(a, b resource.Quantity) int {
	if order := a.Cmp(b); order <= 0 {
		return order
	}
	a, b = a.DeepCopy(), b.DeepCopy()
	a.RoundUp(resource.Milli)
	b.RoundUp(resource.Milli)
	return a.Cmp(b)
}

func hugePages(path *field.Path, r *corev1.ResourceRequirements) field.ErrorList {
	huge := false
	for _, list := range [...]corev1.ResourceList{r.Limits, r.Requests} {
		for name := range list {
			if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
				return nil
			}
			huge = huge || isHugePages(name)
		}
	}
	if !huge {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "huge pages require cpu or memory")}
}

// Claims refuses repeated claims, and all claims if there is no pod template, because the
// pod has no claims then. With a template, package podvalidation validates them. Both may
// be nil.
func Claims(path *field.Path, r *corev1.ResourceRequirements, template *corev1.PodTemplateSpec) field.ErrorList {
	if r == nil || len(r.Claims) == 0 {
		return nil
	}
	if template != nil {
		return UniqueClaims(path, r.Claims)
	}
	var errs field.ErrorList
	for i := range r.Claims {
		errs = append(errs, field.Invalid(path.Child("claims").Index(i).Child("name"), r.Claims[i].Name,
			"must be the name of one of spec.podTemplate.spec.resourceClaims"))
	}
	return append(errs, UniqueClaims(path, r.Claims)...)
}

// UniqueClaims refuses repeated claims.
func UniqueClaims(path *field.Path, list []corev1.ResourceClaim) field.ErrorList {
	return Unique(path.Child("claims"), "name", list, func(c *corev1.ResourceClaim) string { return c.Name })
}
