// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Applying the same manifest again writes nothing, and changes no owner.
func TestApplyAgain(t *testing.T) {
	t.Parallel()
	for name, apply := range applies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range *seeds {
				s, spec := created(t, newRandom(seed), apply)
				first := s.state()
				for range 3 {
					apply(s, spec)
				}
				if diff := diff(t, first, s.state()); diff != "" {
					t.Fatalf("seed %d: applying %s again (-first +then):\n%s", seed, marshal(t, spec), diff)
				}
			}
		})
	}
}

// created draws specs until one is accepted, so that each seed has an object. About two in five
// are refused.
func created(t *testing.T, r random, apply func(*server, map[string]any) field.ErrorList) (*server, map[string]any) {
	t.Helper()
	const most = 20
	for range most {
		s, spec := &server{t: t}, r.spec()
		if len(apply(s, spec)) == 0 {
			return s, spec
		}
	}
	t.Fatalf("%d specs were refused: the generator must draw more valid ones", most)
	return nil, nil
}
