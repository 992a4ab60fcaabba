// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestFormatErrorsNamesTheFirstErrorsAndCountsTheOthers(t *testing.T) {
	var errs field.ErrorList
	for range 25 {
		errs = append(errs, field.Required(field.NewPath("spec", "image"), "write one"))
	}
	if got := FormatErrors(errs); strings.Count(got, "spec.image") != 20 || !strings.HasSuffix(got, "; and 5 more") {
		t.Errorf("25 errors are formatted as %q", got)
	}
	if got := FormatErrors(errs[:2]); got != "spec.image: Required value: write one; spec.image: Required value: write one" {
		t.Errorf("2 errors are formatted as %q", got)
	}
}

// What is wrong with a field is said once, also of a field in it.
func TestOthers(t *testing.T) {
	t.Parallel()
	errs := func(paths ...string) (out field.ErrorList) {
		for _, path := range paths {
			out = append(out, field.Required(field.NewPath(path), ""))
		}
		return out
	}
	got := Others(errs("spec.a", "spec.a.b", "spec.a[0]", "spec.ab", "spec"), errs("spec.a"))
	if FormatErrors(got) != FormatErrors(errs("spec.ab", "spec")) {
		t.Error(FormatErrors(got))
	}
}

func TestCutDividesNoCharacter(t *testing.T) {
	for _, text := range []string{"", "plain", strings.Repeat("a", 40), strings.Repeat("ö", 40), strings.Repeat("箱", 40), strings.Repeat("🚀", 40), "\xff\xfe" + strings.Repeat("\x80", 40)} {
		for most := 3; most <= 2*len(text)+3; most++ {
			got := Cut(text, most)
			if len(got) > most {
				t.Fatalf("%d bytes of %q, want at most %d", len(got), text, most)
			}
			if len(text) <= most && got != text {
				t.Fatalf("%q was cut to %q, and %d bytes are allowed", text, got, most)
			}
			if utf8.ValidString(text) && !utf8.ValidString(got) {
				t.Fatalf("%q, cut to %d bytes, is %q", text, most, got)
			}
		}
	}
}

// TestSizesMayShrink has errors about sizes, by the size, and which of them are new.
func TestSizesMayShrink(t *testing.T) {
	t.Parallel()
	const most = 64
	tooLong := func(size int) *field.Error {
		err := field.TooLong(field.NewPath("spec", "podTemplate"), "", most)
		err.BadValue = size
		return err
	}
	tooMany := func(size int) *field.Error {
		return field.TooMany(field.NewPath("spec", "items").Index(size).Child("ports"), size, most)
	}
	for name, size := range map[string]func(int) *field.Error{"bytes": tooLong, "items": tooMany} {
		for _, test := range []struct{ old, updated, want []int }{
			{nil, []int{70}, []int{70}},
			{[]int{70}, []int{70}, nil},
			{[]int{70}, []int{69}, nil},
			{[]int{70}, []int{71}, []int{71}},
			{[]int{70}, []int{70, 65}, []int{65}},
			{[]int{80, 70}, []int{65, 75}, nil},
			{[]int{70, 80}, []int{75, 65}, nil},
			{[]int{80, 70}, []int{75, 71}, []int{71}},
		} {
			errorsOf := func(sizes []int) (errs field.ErrorList) {
				for _, n := range sizes {
					errs = append(errs, size(n))
				}
				return errs
			}
			var got []int
			for _, err := range Added(errorsOf(test.updated), errorsOf(test.old)) {
				got = append(got, err.BadValue.(int))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: %v after %v (-want +got):\n%s", name, test.updated, test.old, diff)
			}
		}
	}
}

// TestAValueIsNoSize: another value of any other error is another error.
func TestAValueIsNoSize(t *testing.T) {
	t.Parallel()
	path := field.NewPath("spec", "replicas")
	old := field.ErrorList{field.Invalid(path, 70, "is bad"), field.TooLong(path, "", 5)}
	updated := field.ErrorList{field.Invalid(path, 69, "is bad"), field.TooLong(path, "", 4)}
	if got := Added(updated, old); len(got) != 2 {
		t.Errorf("new errors are %v", got)
	}
}

// TestManyErrorsAreCompared: the order of the errors and of their sizes does not matter, and
// a path can have any length.
func TestManyErrorsAreCompared(t *testing.T) {
	t.Parallel()
	var errs field.ErrorList
	for i := range 5000 {
		errs = append(errs, field.Required(field.NewPath("spec", "x").Index(i), ""))
	}
	errs = append(errs, field.TypeInvalid(field.NewPath("spec").Key(strings.Repeat("[1]", 50000)), 1, ""))
	if got := Added(errs, errs[1:]); len(got) != 1 {
		t.Errorf("%d new errors, want one", len(got))
	}
}
