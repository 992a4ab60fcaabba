// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAMessageIsNeverLongerThanAConditionTakes(t *testing.T) {
	var conditions []metav1.Condition
	for _, character := range []string{"a", "箱"} {
		NewStalled(ReasonChildRefused, strings.Repeat(character, 100_000)).SetConditions(&conditions, 1, at(0))
		for _, condition := range conditions {
			if n := utf8.RuneCountInString(condition.Message); n > maxMessage || n < maxMessage/4 {
				t.Errorf("the message of %s has %d characters, want at most %d and not much less", condition.Type, n, maxMessage)
			}
		}
	}
}
