// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

// Read returns an item of at most limit bytes, and the headers of the answer.
func (d *Downloader) Read(ctx context.Context, item Item, limit int64) (body []byte, header http.Header, err error) {
	err = d.ask(ctx, item, func(answer *http.Response) (err error) {
		header = answer.Header
		if body, err = io.ReadAll(io.LimitReader(answer.Body, limit+1)); err != nil {
			return broken(err, item.URL)
		}
		d.Counter.Add(int64(len(body)))
		if int64(len(body)) > limit {
			return failure.New(failure.TooBig, "the answer of %s is too long: check spec.model.uri", guard.Show(item.URL))
		}
		return nil
	})
	return body, header, err
}

// Header returns the headers of the answer alone.
func (d *Downloader) Header(ctx context.Context, item Item) (header http.Header, err error) {
	err = d.ask(ctx, item, func(answer *http.Response) error {
		header = answer.Header
		return nil
	})
	return header, err
}

// ask requests an item, with the usual attempts, until one gets an answer that it can read.
func (d *Downloader) ask(ctx context.Context, item Item, one func(*http.Response) error) error {
	return d.retry(ctx, item, "the request failed", false, func(ctx context.Context) (bool, error) {
		response, err := d.open(ctx, item, nil)
		if err != nil {
			return false, err
		}
		defer response.Body.Close() //nolint:errcheck // It was only read.
		if response.StatusCode != http.StatusOK {
			return false, refusal(response, item)
		}
		return false, one(response)
	})
}

// open sends the request for an item, with more headers. Reading the body of the answer fails when it comes too slowly.
func (d *Downloader) open(ctx context.Context, item Item, header http.Header) (response *http.Response, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	if item.Open != nil {
		response, err = item.Open(ctx, header)
	} else {
		request := item.Request
		request.Header = header
		response, err = d.Client.Get(ctx, request)
	}
	q := d.quota(item.URL)
	defer q.answered() // After what it says is heeded.
	if err != nil {
		cancel(nil)
		return nil, broken(err, item.URL)
	}
	d.heed(q, response)
	timer := time.AfterFunc(firstByte, func() { cancel(errStalled) })
	response.Body = &body{ReadCloser: response.Body, ctx: ctx, cancel: cancel, timer: timer, wait: firstByte}
	return response, nil
}
