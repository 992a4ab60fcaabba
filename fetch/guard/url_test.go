// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"net/url"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

func TestShowHidesSecrets(t *testing.T) {
	target, err := url.Parse("https://user:secret@example.com/a%2Fb?token=secret#secret")
	if err != nil {
		t.Fatal(err)
	}
	if got := guard.Show(target); got != "https://example.com/a%2Fb" {
		t.Error(got)
	}
}
