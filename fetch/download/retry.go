// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

const (
	firstDelay = time.Second
	maxDelay   = 30 * time.Second
)

// temporary is an error of an attempt that another attempt may cure.
type temporary struct {
	error
	// after is how long the server wants to be left alone; 0 is unknown.
	after time.Duration
	// limited is true if the server is there, and has answered enough for now.
	limited bool
}

func (t *temporary) Unwrap() error { return t.error }

// spent is what attempts have used since the last progress.
type spent struct {
	since time.Time
	// waited is how long servers that were connected to brought nothing, and asked how long they
	// have asked for.
	waited, asked time.Duration
	// begun is true once there was progress.
	begun bool
}

// retry calls attempt, with one of the connections, until it succeeds, fails finally, or has made no progress for as long as next allows. An attempt returns whether it
// made progress; the delays begin anew then. begun is true if there was progress before.
func (d *Downloader) retry(ctx context.Context, item Item, what string, begun bool, attempt func(context.Context) (bool, error)) error {
	q := d.quota(item.URL)
	used := spent{since: time.Now(), begun: begun}
	for failed := 0; ; failed++ {
		queued := time.Now()
		release, err := d.acquire(ctx, q)
		if err != nil {
			return err
		}
		begin := time.Now()
		used.since = used.since.Add(begin.Sub(queued))
		progress, err := attempt(ctx)
		release()
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		if progress {
			used, failed = spent{since: time.Now(), begun: true}, 0
		} else if !isDial(err) {
			used.waited += time.Since(begin)
		}
		wait, final := d.next(q, err, failed, &used)
		if final != nil {
			return final
		}
		d.Log.Line("%s: %v; the next attempt is in %s, at %s", what, err, wait.Round(time.Millisecond), time.Now().Add(wait).UTC().Format(time.TimeOnly))
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// isDial is true if no server was connected to, directly or by a proxy.
func isDial(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op != "read" && failed.Op != "write"
}

// next decides what follows an attempt's error: how long to wait for the next attempt, or the error
// that ends the fetch. failed is how many attempts have failed before without progress. Until the
// first byte of a file has come, what servers take while they are connected to does not count as a
// server that is not there; one that has answered enough for now is there.
func (d *Downloader) next(q *quota, err error, failed int, used *spent) (time.Duration, error) {
	again, ok := errors.AsType[*temporary](err)
	if !ok {
		return 0, err
	}
	wait, limit, spent := max(d.delay(failed), again.after), d.RetryFor, time.Since(used.since)
	if again.limited {
		// Each pod waits up to twice as long, so that not all of them come back at once.
		spread := wait + time.Duration(d.Spread*float64(again.after))
		if wait+spent > limit {
			d.hold(q, min(spread, longest))
			return 0, failure.New(failure.RateLimited, "%w: the server has answered enough for now, also to other pods of this address; the next attempt is of use at %s",
				again.error, time.Now().Add(wait).UTC().Format(time.RFC3339))
		}
		wait = min(spread, limit-spent)
		used.asked += wait
		d.hold(q, wait)
		return wait, nil
	}
	connecting := d.ConnectFor > 0 && (!d.begun.Load() || isDial(err) && !used.begun)
	if connecting {
		limit = min(limit, d.ConnectFor+min(used.waited, firstByte)+used.asked)
	}
	if spent+wait > limit || connecting && used.waited >= firstByte {
		return 0, failure.New(failure.Unreachable,
			"%w, and no attempt brought more for %s: check that the server is up, and that NetworkPolicies and HTTPS_PROXY let the pod reach it",
			again.error, spent.Round(100*time.Millisecond))
	}
	return wait, nil
}

// delay returns 1 s, doubled with each attempt up to 30 s, of which the jitter takes up to half away.
func (d *Downloader) delay(failed int) time.Duration {
	full, jitter := min(firstDelay<<min(failed, 5), maxDelay), rand.Float64() //nolint:gosec // It spreads requests in time, and is no secret.
	if d.Jitter != nil {
		jitter = d.Jitter()
	}
	return full - time.Duration(jitter*float64(full)/2)
}
