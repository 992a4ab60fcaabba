// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("an edit of a child by another field manager", Ordered, long, func() {
	BeforeAll(func() {
		stop() // Only this spec may reconcile.
		DeferCleanup(start)
	})
	It("is reverted where the operator owns the field, and left alone elsewhere", func(ctx context.Context) {
		all, err := readSchemas(env.Config, "apis/apps/v1", "api/v1")
		Expect(err).NotTo(HaveOccurred())
		found, err := attempts(ctx, all, &worker{namespace: newNamespace(), number: workers})
		Expect(err).NotTo(HaveOccurred())
		inParallel(chosen(found, "testdata/edits-corpus.txt", 120), func(s *worker, a attempt) (result, error) { return s.try(ctx, all, a) })
	})
})
