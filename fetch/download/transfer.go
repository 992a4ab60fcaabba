// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
)

// transfer is an item on its way into a file, over one or more connections.
type transfer struct {
	d     *Downloader
	item  Item
	to    Sink
	limit int64
	hash  hash.Hash

	// written is how many bytes the file has, which hash has seen; furthest is the most it ever had.
	written, furthest int64
	// total is how many bytes the server says that the item has; -1 is unknown.
	total int64
	// etag is the strong validator of these bytes; empty is none.
	etag string
	// resumed is true if the file's bytes came over several connections.
	resumed bool
	// whole is true if nothing is to be resumed.
	whole bool
	// writing is the error of the file, which no other connection cures.
	writing error
}

func newTransfer(d *Downloader, item Item, to Sink, limit int64) *transfer {
	return &transfer{d: d, item: item, to: to, limit: limit, hash: newHash(item)}
}

// attempt fetches over one connection what is missing, of which the first byte must come in time. It returns whether the file is now larger than ever.
func (t *transfer) attempt(ctx context.Context, first time.Duration) (bool, error) {
	before := t.furthest
	ctx, watch := watched(ctx, first)
	defer watch.stop()
	err := t.fetch(ctx, watch)
	return t.furthest > before, err
}

func (t *transfer) fetch(ctx context.Context, watch *watchdog) error {
	request := t.item.Request
	request.Header = t.header()
	response, err := t.d.Client.Get(ctx, request)
	if err != nil {
		return broken(watch.reason(ctx, err), t.item.URL)
	}
	defer response.Body.Close() //nolint:errcheck // It was only read.
	if err := t.begin(response); err != nil {
		return err
	}
	if t.d.copied == nil {
		t.d.copied = make([]byte, buffer)
	}
	_, err = io.CopyBuffer(onlyWriter{t}, watch.reader(response.Body), t.d.copied)
	switch {
	case t.writing != nil:
		return t.writing
	case err != nil:
		return broken(watch.reason(ctx, err), t.item.URL)
	case t.total >= 0 && t.written != t.total:
		return &temporary{err: fmt.Errorf("%s: %d of %d bytes came", guard.Show(t.item.URL), t.written, t.total)}
	}
	return nil
}

// onlyWriter hides every other method, so that io.CopyBuffer uses its buffer.
type onlyWriter struct{ io.Writer }

// header asks for the missing part, on the condition that the item is still the same (RFC 9110, 13.1.5).
func (t *transfer) header() http.Header {
	if !t.canResume() {
		return nil
	}
	return http.Header{"Range": {fmt.Sprintf("bytes=%d-", t.written)}, "If-Range": {t.etag}}
}

func (t *transfer) canResume() bool { return t.written > 0 && t.etag != "" && !t.whole }

// begin decides what an answer's body is: the item from its start, its missing part, or neither.
func (t *transfer) begin(response *http.Response) error {
	switch {
	case response.StatusCode == http.StatusOK:
		return t.beginWhole(response)
	case response.StatusCode == http.StatusPartialContent && t.canResume():
		return t.beginPart(response)
	case response.StatusCode == http.StatusRequestedRangeNotSatisfiable && t.canResume():
		return t.again("the server has no more bytes than were fetched before the connection broke")
	}
	return refusal(response, t.item.URL, t.item.Explain, time.Now())
}

func (t *transfer) beginWhole(response *http.Response) error {
	if t.written > 0 {
		t.d.Log.Line("the server does not resume, or has another file now: the download begins from the start")
		if err := t.restart(); err != nil {
			return err
		}
	}
	t.etag = strong(response.Header.Get("ETag"))
	return t.expect(response.ContentLength)
}

func (t *transfer) beginPart(response *http.Response) error {
	first, total, ok := parseRange(response.Header.Get("Content-Range"))
	if !ok || first != t.written || strong(response.Header.Get("ETag")) != t.etag {
		return t.again("the server answered with another part, or with a part of another file")
	}
	t.resumed = true
	t.d.Log.Line("the download is resumed at %s", report.Bytes(t.written))
	return t.expect(total)
}

// expect checks the item's size, if the server says it, before anything of it is fetched.
func (t *transfer) expect(total int64) error {
	t.total = total
	if total > t.limit {
		return tooBig(t.item, t.limit)
	}
	if total > 0 && t.item.Size < 0 {
		t.d.Counter.Total(total)
	}
	return nil
}

// again makes the next attempt begin from the start, without ranges.
func (t *transfer) again(why string) error {
	t.whole = true
	if err := t.restart(); err != nil {
		return err
	}
	return &temporary{err: fmt.Errorf("%s: %w", guard.Show(t.item.URL), errors.New(why))}
}

func (t *transfer) restart() error {
	if _, err := t.to.Seek(0, io.SeekStart); err != nil {
		return err
	}
	t.d.Counter.Add(-t.written)
	t.written, t.etag, t.resumed = 0, "", false
	t.hash.Reset()
	if t.item.Hash.New != nil {
		t.hash = t.item.Hash.New() // It may begin with a header, which Reset forgets.
	}
	return t.to.Truncate(0)
}

// Write appends bytes to the file and the hash.
func (t *transfer) Write(bytes []byte) (int, error) {
	if t.written+int64(len(bytes)) > t.limit {
		t.writing = tooBig(t.item, t.limit)
		return 0, t.writing
	}
	n, err := t.to.Write(bytes)
	t.hash.Write(bytes[:n])
	t.written += int64(n)
	t.furthest = max(t.furthest, t.written)
	t.d.begun = t.d.begun || n > 0
	t.d.Counter.Add(int64(n))
	t.writing = err
	return n, err
}

func tooBig(item Item, limit int64) error {
	return failure.New(failure.TooBig, "%s has more than the %s that are left of spec.model.sizeLimit: raise it", guard.Show(item.URL), report.Bytes(limit))
}

// strong returns an entity tag that If-Range may have, or nothing.
func strong(etag string) string {
	if strings.HasPrefix(etag, `"`) && strings.HasSuffix(etag, `"`) && len(etag) > 2 {
		return etag
	}
	return ""
}

// contentRange is the header of one part: "bytes 100-199/200", or "bytes 100-199/*".
var contentRange = regexp.MustCompile(`^bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)$`)

// parseRange returns where a part begins, and how many bytes the whole has; -1 is unknown.
func parseRange(header string) (first, total int64, ok bool) {
	match := contentRange.FindStringSubmatch(header)
	if match == nil {
		return 0, 0, false
	}
	first, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		return 0, 0, false
	}
	if match[2] == "*" {
		return first, -1, true
	}
	total, err = strconv.ParseInt(match[2], 10, 64)
	return first, total, err == nil
}
