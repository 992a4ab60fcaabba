// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"time"
)

// finishTimeout is how long a reconcile continues after the manager has begun to stop: longer than two
// slow requests, and well within the manager's 30 s for all of it.
const finishTimeout = 10 * time.Second

// finishing returns the context of a reconcile that is under way when the manager stops: it has ctx's
// deadline, and is cancelled finishTimeout after ctx. A cancelled reconcile has written children that
// status does not show, and the next leader would apply these again. The manager releases its lease
// when all reconciles have ended, so that no two leaders act.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, limited := ctx.Deadline()
	rest, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if limited {
		rest, cancel = context.WithDeadline(context.WithoutCancel(ctx), deadline)
	}
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(finishTimeout, cancel) })
	return rest, func() {
		stop()
		cancel()
	}
}
