// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"net/http"
	"sync"
)

// answer is an http.ResponseWriter that keeps an answer until the handler has returned. So a
// client that does not read its answer keeps no other request waiting.
type answer struct {
	http.ResponseWriter
	code int
	text *bytes.Buffer
}

var texts = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// freeText is the size in bytes of an answer that the connection's own buffers have room for.
const freeText = 4 << 10

// mostKept is the memory in bytes that a buffer may keep until its next use.
const mostKept = 64 << 10

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	if a.code == 0 && code >= http.StatusOK {
		a.code = code
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.text == nil {
		a.text = texts.Get().(*bytes.Buffer)
	}
	return a.text.Write(p)
}

// Flush implements http.Flusher: an answer is sent whole.
func (a *answer) Flush() {}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// size returns the memory of the answer that no connection has of its own.
func (a *answer) size() int64 {
	if a.text == nil || a.text.Cap() <= freeText {
		return 0
	}
	return int64(a.text.Cap())
}

// send sends the answer.
func (a *answer) send() {
	a.WriteHeader(http.StatusOK)
	a.ResponseWriter.WriteHeader(a.code)
	if a.text != nil {
		// If it fails, so does the connection.
		_, _ = a.ResponseWriter.Write(a.text.Bytes())
	}
}

func (a *answer) release() {
	if a.text != nil && a.text.Cap() <= mostKept {
		a.text.Reset()
		texts.Put(a.text)
	}
	a.text = nil
}
