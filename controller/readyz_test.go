// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
)

func TestReadyzSucceedsWhenTheCachesHaveSynced(t *testing.T) {
	for _, filled := range []bool{true, false} {
		check := cacheSynced(&informertest.FakeInformers{Synced: &filled})
		if err := check(httptest.NewRequest(http.MethodGet, "/readyz", nil)); (err == nil) != filled {
			t.Errorf("caches filled: %t, but readyz says: %v", filled, err)
		}
	}
}
