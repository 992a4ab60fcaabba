// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("an edit of a child by another field manager", Ordered, func() {
	BeforeAll(func() {
		stop() // Only the reconciles of this spec are to act.
		DeferCleanup(start)
	})
	It("is reverted where the operator owns the field, and left alone elsewhere", func(ctx context.Context) {
		all, err := readSchemas(env.Config, "apis/apps/v1", "api/v1")
		Expect(err).NotTo(HaveOccurred())
		found, err := attempts(ctx, all, &stage{namespace: newNamespace(), number: workers})
		Expect(err).NotTo(HaveOccurred())
		inParallel(chosen(found, "testdata/edits-corpus.txt", 120), func(s *stage, a attempt) (result, error) { return s.try(ctx, all, a) })
	})
})
