// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tour

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrap(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{"", ""},
		{"short", "short"},
		{"just ten ch", "just ten|  ch"},
		{"one two three four", "one two|  three|  four"},
		{"unbreakable-and-long and more", "unbreakable-and-long and more"},
	} {
		if got := strings.Join(wrap(test.line, 10), "|"); got != test.want {
			t.Errorf("wrap(%q) = %q, want %q", test.line, got, test.want)
		}
	}
}

func TestPlain(t *testing.T) {
	got := plain(`Error from server (Invalid): error when creating "STDIN": admission webhook "default.x" denied the request: ` +
		`ModelBox.model.github.com "b" is invalid: [spec.image: Invalid value: "A", spec.replicas: Invalid value: -1]`)
	want := "ModelBox.model.github.com \"b\" is invalid:\n- spec.image: Invalid value: \"A\",\n- spec.replicas: Invalid value: -1]"
	if got != want {
		t.Errorf("plain = %q, want %q", got, want)
	}
}

func TestAdditions(t *testing.T) {
	for _, test := range []struct {
		name, a, b string
		want       []string
	}{
		{"the same", "a b", "a b", []string{"  a", "  b"}},
		{"more", "a c", "a b c d", []string{"  a", "+ b", "  c", "+ d"}},
		{"less", "a b c", "a c", []string{"  a", "+ c", "- b", "- c"}},
		{"other", "a x", "a y", []string{"  a", "+ y", "- x"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if d := cmp.Diff(test.want, additions(strings.Fields(test.a), strings.Fields(test.b))); d != "" {
				t.Errorf("additions (-want +got):\n%s", d)
			}
		})
	}
}

func TestPlainOfAPolicy(t *testing.T) {
	got := plain(`Error from server (Forbidden): error when creating "STDIN": modelboxes.model.github.com "a" is forbidden: ` +
		`ValidatingAdmissionPolicy 'p' with binding 'p' denied request: alice may not create deployments.apps`)
	if want := "alice may not create deployments.apps"; got != want {
		t.Errorf("plain = %q, want %q", got, want)
	}
}

func TestShellWords(t *testing.T) {
	for want, args := range map[string][]string{
		`get eru web`:                   {"get", "eru", "web"},
		`-p '{"spec":{}}' ''`:           {"-p", `{"spec":{}}`, ""},
		`'it'\''s' --uri=https://a/b=c`: {"it's", "--uri=https://a/b=c"},
	} {
		if got := shellWords(args); got != want {
			t.Errorf("%q: %s", args, got)
		}
	}
}
