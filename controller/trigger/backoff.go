// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// RateLimiter returns the back-off of a controller: after an error an object is reconciled
// again in 50 ms, doubled with each further error up to 2 minutes, for that object alone.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	const first, longest = 50 * time.Millisecond, 2 * time.Minute
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, longest)
}
