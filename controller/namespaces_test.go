// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"slices"
	"strings"
	"testing"
)

func TestNamespaces(t *testing.T) {
	tests := map[string]struct {
		args []string
		want namespaces
		err  string
	}{
		"no flag is all namespaces": {},
		"one":                       {args: []string{"--namespaces=a"}, want: namespaces{"a"}},
		"several":                   {args: []string{"--namespaces=team-a,b,0"}, want: namespaces{"team-a", "b", "0"}},
		"the last flag counts":      {args: []string{"--namespaces=a", "--namespaces=b"}, want: namespaces{"b"}},
		"empty":                     {args: []string{"--namespaces="}, err: "leave out the flag"},
		"an empty item":             {args: []string{"--namespaces=a,,b"}, err: `"" is not the name of a namespace`},
		"an empty item at the end":  {args: []string{"--namespaces=a,"}, err: `"" is not the name of a namespace`},
		"a space":                   {args: []string{"--namespaces=a, b"}, err: `" b" is not the name of a namespace`},
		"a wildcard":                {args: []string{"--namespaces=*"}, err: `"*" is not the name of a namespace`},
		"capital letters":           {args: []string{"--namespaces=Team"}, err: `"Team" is not the name of a namespace`},
		"64 characters":             {args: []string{"--namespaces=" + strings.Repeat("a", 64)}, err: "must be no more than 63 characters"},
		"a duplicate":               {args: []string{"--namespaces=a,b,a"}, err: `"a" occurs twice`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var o options
			flags := flag.NewFlagSet("", flag.ContinueOnError)
			flags.SetOutput(&bytes.Buffer{})
			o.bind(flags)
			err := flags.Parse(test.args)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || !strings.Contains(err.Error(), "namespaces") {
					t.Errorf("the error is %v, want one that contains %q and the name of the flag", err, test.err)
				}
				return
			}
			if err != nil || !slices.Equal(o.namespaces, test.want) {
				t.Errorf("the namespaces are %v, %v, want %v", o.namespaces, err, test.want)
			}
			if got := o.namespaces.cache().DefaultNamespaces; len(got) != len(test.want) {
				t.Errorf("the cache has the namespaces %v, want %v", got, test.want)
			}
		})
	}
}
