// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
)

type refusal struct{ error }

func (refusal) Reported() {}

// An error that lasts ends in a status, whatever it is, unless its reconciler has reported it. Its
// text changes once a minute, although each attempt has another one.
func TestFailuresEndInAStatus(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err func(i int) error
		// texts is the number of different messages in five minutes.
		texts int
	}{
		"a text that stays":                  {func(int) error { return errors.New("no") }, 1},
		"a text that varies":                 {func(i int) error { return fmt.Errorf("request %d", i) }, 5},
		"one that is reported":               {func(i int) error { return fmt.Errorf("request %d: %w", i, refusal{errors.New("no")}) }, 0},
		"a newer object":                     {func(int) error { return errStale }, 0},
		"a status that is written later":     {func(int) error { return &limit.LaterError{} }, 0},
		"one that passes each nine seconds":  {func(i int) error { return map[bool]error{true: errors.New("no")}[i%9 != 0] }, 0},
		"one between newer versions of it":   {func(i int) error { return map[bool]error{true: errors.New("no"), false: errStale}[i%2 == 0] }, 1},
		"one that passes after ten attempts": {func(i int) error { return map[bool]error{true: errors.New("no")}[i < 10] }, 0},
	} {
		clk := clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))
		f := failures{clock: clk, objects: map[types.NamespacedName]failure{}}
		box, texts := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 7}}, map[string]bool{}
		for i := range 300 {
			box.Status.Conditions = nil
			f.observe(box, test.err(i))
			if ready := meta.FindStatusCondition(box.Status.Conditions, ConditionReady); ready != nil {
				texts[ready.Message] = true
				if i < 10 || ready.Reason != ReasonReconcileError || ready.ObservedGeneration != 7 || box.Status.ObservedGeneration != 7 {
					t.Errorf("%s: after %d s: %+v", name, i, ready)
				}
			}
			clk.SetTime(clk.Now().Add(time.Second))
		}
		if len(texts) != test.texts {
			t.Errorf("%s: the messages %v, want %d", name, texts, test.texts)
		}
		f.observe(box, nil)
		if len(f.objects) != 0 {
			t.Errorf("%s: %v is held", name, f.objects)
		}
	}
}
