// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replay posts to an HTTP handler again and again without allocating, so that
// what a benchmark or a test counts is the handler's own.
package replay

import (
	"bytes"
	"net/http"
)

// Client posts JSON to handlers, one request at a time.
type Client struct {
	request *http.Request
	body    body
	answer  answer
}

// New returns a client.
func New() *Client {
	c := &Client{request: &http.Request{Method: http.MethodPost, Header: http.Header{"Content-Type": {"application/json"}}}}
	c.request.Body, c.answer.header = &c.body, http.Header{}
	return c
}

// Post sends a body and returns that of the answer, which holds until the next call.
func (c *Client) Post(handler http.Handler, body []byte) []byte {
	c.body.Reset(body)
	c.answer.body.Reset()
	handler.ServeHTTP(&c.answer, c.request)
	return c.answer.body.Bytes()
}

type body struct{ bytes.Reader }

func (*body) Close() error { return nil }

type answer struct {
	header http.Header
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
func (a *answer) WriteHeader(int)             {}
