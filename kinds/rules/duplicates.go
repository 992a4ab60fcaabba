// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Unique refuses items with the key of an earlier item. name is the field of an item that
// has the key. Empty keys are not compared, because a missing key is another error.
func Unique[T any](path *field.Path, name string, list []T, key func(*T) string) field.ErrorList {
	var errs field.ErrorList
	for _, i := range Duplicates(list, key) {
		if k := key(&list[i]); k != "" {
			errs = append(errs, field.Duplicate(path.Index(i).Child(name), k))
		}
	}
	return errs
}

// Duplicates returns the index of each item with the key of an earlier item.
func Duplicates[T any, K comparable](list []T, key func(*T) K) []int {
	if len(list) < 2 {
		return nil
	}
	var duplicates []int
	seen := make(sets.Set[K], len(list))
	for i := range list {
		k := key(&list[i])
		if seen.Has(k) {
			duplicates = append(duplicates, i)
		}
		seen.Insert(k)
	}
	return duplicates
}
