// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package download fetches files over HTTP: it resumes what was cut, retries what may be cured by another attempt, and
// verifies the hash.
package download

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
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
func (d *Downloader) retry(ctx context.Context, what string, begun bool, attempt func(context.Context) (bool, error)) error {
	used := spent{since: time.Now(), begun: begun}
	for failed := 0; ; failed++ {
		queued := time.Now()
		release, err := d.acquire(ctx)
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
		wait, final := d.next(err, failed, &used)
		if final != nil {
			return final
		}
		d.Log.Line("%s: %v; the next attempt is in %s, at %s", what, err, wait.Round(time.Millisecond), time.Now().Add(wait).UTC().Format(time.TimeOnly))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
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
func (d *Downloader) next(err error, failed int, used *spent) (time.Duration, error) {
	again, ok := errors.AsType[*temporary](err)
	if !ok {
		return 0, err
	}
	wait, limit, spent := max(d.delay(failed), again.after), d.RetryFor, time.Since(used.since)
	if again.limited {
		if wait+spent > limit {
			return 0, failure.New(failure.RateLimited, "%w: the server has answered enough for now, also to other pods of this address; the next attempt is of use at %s",
				again.error, time.Now().Add(wait).UTC().Format(time.RFC3339))
		}
		// Each pod waits up to twice as long, so that not all of them come back at once.
		wait = min(wait+time.Duration(d.Spread*float64(again.after)), limit-spent)
		used.asked += wait
		d.hold(wait)
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

// maxErrorBody is how many bytes of an error's body are read.
const maxErrorBody = 16 << 10

// Explain returns a detail of an answer that is no success to show after the status, and the way out. body is the beginning of its body.
// Empty texts stand for what the status alone says.
type Explain func(answer *http.Response, body []byte) (detail, wayOut string)

// refusal returns the error for an answer that is no success: temporary for the statuses that may pass.
func refusal(answer *http.Response, item Item) error {
	body, _ := io.ReadAll(io.LimitReader(answer.Body, maxErrorBody))
	var detail, wayOut string
	if item.Explain != nil {
		detail, wayOut = item.Explain(answer, body)
	}
	shown := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	if detail != "" {
		shown += " (" + detail + ")"
	}
	after := modeluri.Later(answer.Header, time.Now())
	limited := answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable && after > 0
	_, throttled := retry.DefaultThrottleErrorCodes[detail] // Those that the SDKs of Amazon send again.
	_, again := retry.DefaultRetryableErrorCodes[detail]
	if again || throttled || passes(answer.StatusCode) {
		return &temporary{fmt.Errorf("%s: %s", shown, guard.Show(item.URL)), after, limited || throttled}
	}
	word, usual := failure.Invalid, "check spec.model.uri"
	switch answer.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		word = failure.NotFound
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		word, usual = failure.Denied, usual+", and the Secret of spec.model.credentials"
	}
	return failure.New(word, "%s: %s: %s", shown, guard.Show(item.URL), cmp.Or(wayOut, usual))
}

// passes is true for the statuses that another attempt may cure.
func passes(status int) bool {
	return status >= 500 || slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}, status)
}

// broken returns the error for a request without an answer, or with a body that broke off: temporary, except where the
// connection was refused by the fetcher itself.
func broken(err error, target *url.URL) error {
	if f, ok := errors.AsType[*failure.Failure](err); ok {
		return f
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return failure.New(failure.Invalid, "%s answers without TLS: use the port that serves https://", guard.Show(target))
	}
	return &temporary{error: fmt.Errorf("%s: %w", guard.Show(target), err)}
}

// check refuses an answer that, by its headers, is another file than the one at the URL, or has an end that cannot be told from a cut.
// A hash or a size that was published tells this by itself, and for a bucket an encoding is what the object was stored with.
func (t *transfer) check(response *http.Response) error {
	if t.item.Hash.Want != "" || t.item.Size >= 0 {
		return nil
	}
	shown := guard.Show(t.item.URL)
	encoding := strings.ToLower(response.Header.Get("Content-Encoding"))
	switch {
	case t.item.Open == nil && encoding != "" && encoding != "identity" && !t.isCompressed(encoding):
		return failure.New(failure.Refused, "%s comes with Content-Encoding %s, which was not asked for: let the server send the file as it is, or set spec.model.sha256",
			shown, encoding)
	case response.StatusCode == http.StatusOK && response.ContentLength < 0 && response.ProtoMajor == 1 && len(response.TransferEncoding) == 0:
		return failure.New(failure.Refused, "%s comes without its size, so that its end is the same as a cut: let the server send Content-Length, or set spec.model.sha256", shown)
	}
	return nil
}

// isCompressed is true for the encoding that a file has by its name: some servers name that of .tar.gz.
func (t *transfer) isCompressed(encoding string) bool {
	name := strings.ToLower(t.item.URL.Path)
	return strings.HasSuffix(encoding, "gzip") && (strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".tgz"))
}

// checkContent refuses a complete file that is no model by its content. A hash tells this by itself.
func (t *transfer) checkContent() error {
	if t.item.Hash.Want != "" || t.item.Size >= 0 {
		return nil
	}
	if t.written == 0 {
		return failure.New(failure.Refused, "%s has 0 bytes: check that it was uploaded, or set spec.model.sha256 if it is empty on purpose", guard.Show(t.item.URL))
	}
	if t.item.Open != nil { // Who signs a request is sent to no login.
		return nil
	}
	begin := make([]byte, min(512, t.written))
	if _, err := t.to.ReadAt(begin, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	ending := strings.ToLower(path.Ext(t.item.URL.Path))
	if strings.HasPrefix(http.DetectContentType(begin), "text/html") && ending != ".html" && ending != ".htm" {
		return failure.New(failure.Refused, "%s is a web page, often of a login: use the URL that downloads the file itself, and spec.model.credentials", guard.Show(t.item.URL))
	}
	return nil
}

const (
	// firstByte is how long an answer may take until its first byte: a cache that fetches the file
	// itself first takes minutes.
	firstByte = 5 * time.Minute
	// stall is how long after that a connection may need for each stallBytes, 1 KiB/s, before it is
	// closed and the transfer is resumed. What it has brought in less is no progress.
	stall      = time.Minute
	stallBytes = 60 << 10
)

// errStalled ends a request to which too few bytes came for as long as its body waits.
var errStalled = errors.New("less than 1 KiB/s came")

// body is the body of an answer. It ends with an error when bytes come too slowly.
type body struct {
	io.ReadCloser
	// ctx is that of the request, which cancel ends.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// timer cuts the connection after wait, and bytes is what came since it was set.
	timer *time.Timer
	wait  time.Duration
	bytes int
}

func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if b.bytes += n; b.bytes >= stallBytes || n > 0 && b.wait == firstByte {
		b.wait, b.bytes = stall, 0
		b.timer.Reset(b.wait)
	}
	if cause := context.Cause(b.ctx); cause != nil && err != nil && !errors.Is(err, io.EOF) {
		if err = cause; errors.Is(cause, errStalled) {
			err = fmt.Errorf("%w for %s", cause, b.wait)
		}
	}
	return n, err
}

// Close ends the request.
func (b *body) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}
