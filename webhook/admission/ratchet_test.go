// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
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

// TestEchoes: an error that only follows from a value that was left out is not reported beside it.
func TestEchoes(t *testing.T) {
	t.Parallel()
	const object = `{"spec":{"name":"A","ports":[{"port":"x"},{"port":0}],"labels":{"a.b/c":1,"d":"e f"}}}`
	ports, labels := field.NewPath("spec", "ports"), field.NewPath("spec", "labels")
	misfit := field.TypeInvalid(firstPort(ports), "x", "must be a number")
	reported := field.ErrorList{
		misfit, field.TypeInvalid(labels.Key("a.b/c"), 1, "must be text"), field.Invalid(field.NewPath("spec", "name"), "A", "is bad"),
		field.Invalid(ports.Index(1).Child("port"), 0, "is bad"), field.Invalid(labels.Key("d"), "e f", "is bad"), field.Required(field.NewPath("spec", "image"), ""),
		field.TooMany(ports, 2, 1), field.Duplicate(ports.Index(1), "0"),
	}
	echoes := field.ErrorList{
		field.Required(firstPort(ports), ""), field.Invalid(firstPort(ports), 0, "is bad"), field.Invalid(ports.Index(0), "", "needs a port"),
		field.Invalid(ports.Index(0).Child("targetPort"), 0, "is bad"), field.Invalid(labels.Key("a.b/c"), "", "is bad"),
		field.Invalid(firstPort(ports).Child("deeper"), "", "is bad"),
	}
	all := append(echoes[:3:3], append(slices.Clip(reported), echoes[3:]...)...)
	if diff := cmp.Diff(reported, withoutEchoes(all, []byte(object))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	alone := field.ErrorList{field.Invalid(ports.Index(0).Child("targetPort"), 0, "is bad")}
	if got := withoutEchoes(alone, []byte(object)); len(got) != 1 {
		t.Errorf("without a misfit: %v", got)
	}
}

func firstPort(ports *field.Path) *field.Path { return ports.Index(0).Child("port") }
