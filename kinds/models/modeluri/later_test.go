// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modeluri

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestLater(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for _, each := range []struct {
		name, value string
		want        time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", now.Add(time.Minute).Format(http.TimeFormat), time.Minute},
		{"Retry-After", now.Add(-time.Minute).Format(http.TimeFormat), 0},
		{"Retry-After", "-5", 0},
		{"Retry-After", "nonsense", 0},
		{"RateLimit", `"api";r=0;t=26`, 26 * time.Second},
		{"RateLimit", `"api";t=26;r=0`, 26 * time.Second},
		{"RateLimit", `"api"; r=0; t=26`, 26 * time.Second},
		{"RateLimit", `"api";r=1;t=26`, 0},
		{"RateLimit", `"api";r=0;t=26, "pages";r=0;t=40, "resolvers";r=9;t=90`, 40 * time.Second},
		{"RateLimit", "limit=100, remaining=0, reset=26", 26 * time.Second},
		{"RateLimit", "nonsense", 0},
		{"RateLimit-Reset", "26", 26 * time.Second},
		{"X-RateLimit-Reset", "26", 26 * time.Second},
		{"X-RateLimit-Reset", fmt.Sprint(now.Unix() + 26), 26 * time.Second},
		{"X-RateLimit-Reset", fmt.Sprint(now.Unix() - 26), 0},
		{"X-RateLimit-Reset", "99999999999999999999", 0},
		{"X-Other", "26", 0},
	} {
		if got := Later(http.Header{http.CanonicalHeaderKey(each.name): {each.value}}, now); got != each.want {
			t.Errorf("%s: %s is %s, want %s", each.name, each.value, got, each.want)
		}
	}
}
