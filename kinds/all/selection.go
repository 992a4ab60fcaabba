// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package all

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

// Selection is the flag --kinds: which kinds a process serves. The zero value is all of them.
type Selection struct{ named, leftOut []string }

// AddFlag adds the flag, which may be repeated.
func (s *Selection) AddFlag(flags *flag.FlagSet) {
	flags.Func("kinds", "comma-separated kinds to serve, such as ModelBox,App; a minus sign before one, such as -Eru, leaves it out; "+
		"may be repeated; all kinds if empty", s.set)
}

// set adds a comma-separated list. It returns an error for an unknown kind, and if no kind is left.
func (s *Selection) set(list string) error {
	for word := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' }) {
		name := strings.TrimPrefix(word, "-")
		i := slices.IndexFunc(Kinds, func(k *Kind) bool { return strings.EqualFold(k.GVK.Kind, name) })
		switch {
		case i < 0:
			return fmt.Errorf("there is no kind %q: it must be one of %s", name, strings.Join(names(Kinds), ", "))
		case name == word:
			s.named = append(s.named, Kinds[i].GVK.Kind)
		default:
			s.leftOut = append(s.leftOut, Kinds[i].GVK.Kind)
		}
	}
	if len(s.Of(Kinds)) == 0 {
		return fmt.Errorf("it leaves out all of %s", strings.Join(names(Kinds), ", "))
	}
	return nil
}

func names(list []*Kind) (out []string) {
	for _, kind := range list {
		out = append(out, kind.GVK.Kind)
	}
	return out
}

// Has reports whether a kind is served.
func (s *Selection) Has(kind string) bool {
	return (len(s.named) == 0 || slices.Contains(s.named, kind)) && !slices.Contains(s.leftOut, kind)
}

// Of returns the kinds of a list that are served, at least one of all kinds.
func (s *Selection) Of(list []*Kind) []*Kind {
	return slices.DeleteFunc(slices.Clone(list), func(k *Kind) bool { return !s.Has(k.GVK.Kind) })
}
