// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
			for _, err := range added(errorsOf(test.updated), errorsOf(test.old)) {
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
	if got := added(updated, old); len(got) != 2 {
		t.Errorf("new errors are %v", got)
	}
}
