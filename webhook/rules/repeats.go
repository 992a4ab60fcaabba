// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// scanned is the longest list that is searched by looking at each item, which for a
// few costs less than a map.
const scanned = 16

// unique refuses items whose key an earlier item has, at the field that is called
// name. Empty keys are not compared: that they are missing is another error.
func unique[T any](path *field.Path, name string, list []T, key func(*T) string) field.ErrorList {
	var errs field.ErrorList
	repeats(list, key, func(i int) {
		if k := key(&list[i]); k != "" {
			errs = append(errs, field.Duplicate(path.Index(i).Child(name), k))
		}
	})
	return errs
}

// repeats calls found with the index of each item whose key an earlier item has.
func repeats[T any, K comparable](list []T, key func(*T) K, found func(int)) {
	if len(list) > scanned {
		repeatsByMap(list, key, found)
		return
	}
	for i := range list {
		k := key(&list[i])
		if contains(list[:i], func(item *T) bool { return key(item) == k }) {
			found(i)
		}
	}
}

func repeatsByMap[T any, K comparable](list []T, key func(*T) K, found func(int)) {
	seen := make(map[K]struct{}, len(list))
	for i := range list {
		k := key(&list[i])
		if _, ok := seen[k]; ok {
			found(i)
		}
		seen[k] = struct{}{}
	}
}

// contains is slices.ContainsFunc without a copy of each item.
func contains[T any](list []T, is func(*T) bool) bool {
	for i := range list {
		if is(&list[i]) {
			return true
		}
	}
	return false
}
