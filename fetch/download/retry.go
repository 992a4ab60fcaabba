// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package download fetches files over HTTP: it resumes what was cut, retries what may be cured by another attempt, and
// verifies the hash.
package download

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

const (
	firstDelay = time.Second
	maxDelay   = 30 * time.Second
	// unknownHost is how long a host name that does not exist is retried: the cluster's name server may not be ready,
	// but most such names are misspelt.
	unknownHost = time.Minute
)

// temporary is an error of an attempt that another attempt may cure.
type temporary struct {
	err error
	// after is how long the server wants to be left alone; 0 is unknown.
	after time.Duration
	// within is how long it is retried, if that is less than usual; 0 is as usual.
	within time.Duration
}

func (t *temporary) Error() string { return t.err.Error() }
func (t *temporary) Unwrap() error { return t.err }

// retry calls attempt until it succeeds, fails finally, or has made no progress for as long as limit says. An attempt gets the time
// within which its first byte must come, and returns whether it made progress; the delays begin anew then.
func (d *Downloader) retry(ctx context.Context, what string, attempt func(context.Context, time.Duration) (bool, error)) error {
	since := time.Now()
	var earlier error
	for failed := 0; ; failed++ {
		progress, err := attempt(ctx, d.first(time.Since(since)))
		if err == nil {
			return nil
		}
		if progress {
			since, failed, earlier = time.Now(), 0, nil
		}
		// The last attempt may have had no time. What the one before it says is why.
		if short, silent := errors.AsType[stalled](err); silent && time.Duration(short) < firstDelay && earlier != nil {
			err = earlier
		} else {
			earlier = err
		}
		wait, final := d.next(err, failed, time.Since(since))
		if final != nil {
			return final
		}
		d.Log.Line("%s: %v; the next attempt is in %s", what, err, wait.Round(time.Millisecond))
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// limit returns how long attempts may bring nothing new.
func (d *Downloader) limit() time.Duration {
	if d.connecting() {
		return min(d.ConnectFor, d.RetryFor)
	}
	return d.RetryFor
}

// first returns within which time an attempt must bring its first byte, if there were attempts for so long.
func (d *Downloader) first(without time.Duration) time.Duration {
	if d.connecting() {
		return min(stall, d.ConnectFor-without)
	}
	return stall
}

// connecting is true until the first byte of a file has come.
func (d *Downloader) connecting() bool { return d.ConnectFor > 0 && !d.begun }

// next decides what follows an attempt's error: how long to wait for the next attempt, or the error that ends the fetch.
// failed is how many attempts have failed before without progress, and without is how long there has been none.
func (d *Downloader) next(err error, failed int, without time.Duration) (time.Duration, error) {
	again, ok := errors.AsType[*temporary](err)
	if !ok {
		return 0, err
	}
	limit := d.limit()
	if again.within > 0 {
		limit = min(limit, again.within)
	}
	wait := max(delay(failed, d.jitter()), again.after)
	if without+wait > limit {
		return 0, failure.New(failure.Unreachable,
			"%w, and no attempt brought more for %s: check that the server is up, and that NetworkPolicies and HTTPS_PROXY let the pod reach it",
			again.err, limit)
	}
	return wait, nil
}

// delay returns 1 s, doubled with each attempt up to 30 s, of which the jitter (0 to 1) takes up to half away.
func delay(failed int, jitter float64) time.Duration {
	full := maxDelay
	if failed < 5 {
		full = firstDelay << failed
	}
	return full - time.Duration(jitter*float64(full)/2)
}

func (d *Downloader) jitter() float64 {
	if d.Jitter != nil {
		return d.Jitter()
	}
	return rand.Float64() //nolint:gosec // It spreads requests in time, and is no secret.
}

func pause(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retryAfter reads the header Retry-After (RFC 9110, 10.2.3): seconds or a date. 0 is none.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(date.Sub(now), 0)
	}
	return 0
}
