// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modeluri

import (
	"fmt"
	"slices"
)

// Selection are the patterns of the fields include and exclude. It selects the files that a pattern
// of include matches, or all without any, and none of exclude does.
type Selection []*selector

type selector struct {
	Pattern
	field   string
	matched bool
}

const include, exclude = "include", "exclude"

// ParseSelection reads patterns. Its error begins with the name of the field.
func ParseSelection(included, excluded []string) (out Selection, err error) {
	for i, text := range slices.Concat(included, excluded) {
		each := &selector{field: include}
		if i >= len(included) {
			each.field = exclude
		}
		if each.Pattern, err = ParsePattern(text); err != nil {
			return nil, fmt.Errorf("%s: %s %w", each.field, text, err)
		}
		out = append(out, each)
	}
	return out, nil
}

// Selects reports whether a file is selected. It asks all patterns, because each has to match a
// file.
func (s Selection) Selects(name string) bool {
	selects := map[string]bool{include: len(s) == 0 || s[0].field == exclude}
	for _, each := range s {
		if each.Match(name) {
			each.matched, selects[each.field] = true, true
		}
	}
	return selects[include] && !selects[exclude]
}

// Unmatched returns the first pattern that has matched no file, with its field; empty is none.
func (s Selection) Unmatched() (field, pattern string) {
	for _, each := range s {
		if !each.matched {
			return each.field, each.text
		}
	}
	return "", ""
}
