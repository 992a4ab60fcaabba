// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Backoff is how long an object that failed waits for its next attempt: 50 ms,
// doubled with each failure up to 2 minutes, for that object alone.
func Backoff() workqueue.TypedRateLimiter[reconcile.Request] {
	const first, longest = 50 * time.Millisecond, 2 * time.Minute
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](first, longest)
}
