// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
)

// header asks for a part, and for the whole item if it is another one now (RFC 9110, 13.1.5); nil asks for all of it.
func (t *transfer) header(part *part, helper bool) (header http.Header, asked part) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.written == 0 && t.chunk == 0 || t.etag == "" || t.total < 0 || !helper && t.whole {
		if !helper {
			t.whole = false
		}
		return nil, *part
	}
	return http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", part.begin, part.end-1)}, "If-Range": {t.etag}}, *part
}

// begin decides what an answer's body is: the item from its start, its missing part, or neither.
func (t *transfer) begin(response *http.Response, part *part, wanted part, asked, helper bool) error {
	switch status := response.StatusCode; {
	case asked && status == http.StatusPartialContent && t.isPart(response, wanted):
		if t.chunk == 0 {
			t.several = true
			t.d.Log.Line("the download is resumed at %s", report.Bytes(part.begin))
		}
		return t.check(response)
	case helper && !passes(status):
		return errNotServed
	case status == http.StatusOK && !helper:
		return t.beginWhole(response, part)
	case asked && (status == http.StatusPartialContent || status == http.StatusRequestedRangeNotSatisfiable):
		t.whole = true
		return &temporary{error: fmt.Errorf("%s: the server answered with another part, or with a part of another file", guard.Show(t.item.URL))}
	}
	return refusal(response, t.item)
}

func (t *transfer) beginWhole(response *http.Response, part *part) error {
	if t.isSame(response) {
		return t.skip(response, part)
	}
	if t.item.Published != nil && t.item.Hash.Want == "" {
		t.item.Hash = t.item.Published(response.Header)
	}
	if err := errors.Join(t.startOver(part), t.check(response)); err != nil {
		return err
	}
	total := response.ContentLength
	t.mutex.Lock()
	t.etag, t.total = strong(response.Header.Get("ETag")), total
	if total >= 0 {
		t.parts.size(total)
	}
	t.mutex.Unlock()
	if t.item.Size < 0 {
		t.d.Counter.Total(total)
	}
	if t.item.Size >= 0 && total >= 0 && total != t.item.Size {
		return verify(t.item, "", total)
	}
	return t.fits(total)
}

// isSame is true if an answer is all of the file of which there is a part already.
func (t *transfer) isSame(response *http.Response) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.written > 0 && t.etag != "" && strong(response.Header.Get("ETag")) == t.etag && response.ContentLength == t.total
}

// skip reads what is before a part, which then is all that no other connection fetches.
func (t *transfer) skip(response *http.Response, part *part) error {
	t.mutex.Lock()
	t.parts.join(part)
	begin := part.begin
	t.mutex.Unlock()
	if _, err := io.CopyN(io.Discard, response.Body, begin); err != nil {
		return broken(err, t.item.URL)
	}
	return t.check(response)
}

// isPart is true if an answer is the part of the same file that was asked for.
func (t *transfer) isPart(response *http.Response, asked part) bool {
	return response.Header.Get("Content-Range") == fmt.Sprintf("bytes %d-%d/%d", asked.begin, asked.end-1, t.total) &&
		strong(response.Header.Get("ETag")) == t.etag && (response.ContentLength < 0 || response.ContentLength == asked.end-asked.begin)
}

// fits refuses more bytes than the item may have.
func (t *transfer) fits(bytes int64) error {
	if t.item.Size >= 0 && bytes > t.item.Size {
		return failure.New(failure.WrongHash, "%s has more than the %d bytes that %s says: check that nothing changes the file between the server and here",
			guard.Show(t.item.URL), t.item.Size, t.item.Hash.Field)
	}
	if bytes > t.limit {
		return failure.New(failure.TooBig, "%s has more than the %s that are left of spec.model.sizeLimit: raise it", guard.Show(t.item.URL), report.Bytes(t.limit))
	}
	return nil
}

// strong returns an entity tag that If-Range may have, or nothing.
func strong(etag string) string {
	if strings.HasPrefix(etag, `"`) && strings.HasSuffix(etag, `"`) && len(etag) > 2 {
		return etag
	}
	return ""
}
