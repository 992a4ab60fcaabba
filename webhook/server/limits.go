// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A request ends with one of these errors if it does not reach its handler.
var (
	errTooLarge = statusError(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
		"the request is larger than the webhook server accepts", 0)
	// The API server repeats a request, also a POST, if the answer has a Retry-After.
	errOverCapacity = statusError(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"the webhook server has as many requests in flight as it accepts at once", 1)
	errTimeout = statusError(http.StatusRequestTimeout, metav1.StatusReasonTimeout,
		"the body of the request did not arrive in time", 0)
	errIncomplete = statusError(http.StatusBadRequest, metav1.StatusReasonBadRequest,
		"the body of the request is incomplete", 0)
	// errGone is not sent: there is no connection to send it on.
	errGone = statusError(http.StatusBadRequest, metav1.StatusReasonBadRequest, "the connection has ended", 0)
)

func statusError(code int32, reason metav1.StatusReason, message string, retryAfter int32) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
		Details: &metav1.StatusDetails{RetryAfterSeconds: retryAfter},
	}}
}

// request is a request while the server has it.
type request struct {
	server *Server
	conn   *conn
	answer answer
	body   body
	// queue is where the request has its turn, nil if it has none.
	queue *queue
	turn  ticket
}

// serveLimited serves a request within the limits, in three steps:
//
//   - Its body is read. That takes no part of MaxInFlight, so a client that sends slowly
//     keeps no other request waiting: it has a connection, and the memory of what it has
//     sent. A body of more than 256 KiB waits for its turn first, and then has to arrive at
//     a decent rate.
//   - The handler works on it, when it has its turn. What is worked on at a time is bounded by
//     the sum of the bodies, because an object takes a multiple of its text. Small bodies and
//     large ones are counted apart, so that a small one does not wait for large ones.
//   - The answer is sent, when the turn is over.
func (s *Server) serveLimited(w http.ResponseWriter, r *http.Request) {
	inFlight.Inc()
	defer inFlight.Dec()
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	q := &request{server: s, conn: connOf(r), answer: answer{ResponseWriter: w}}
	defer q.release()
	if err := q.serve(r); err != nil {
		q.reject(err)
	}
	q.send()
}

func (q *request) serve(r *http.Request) error {
	if !q.conn.enter(reading) {
		return errGone
	}
	if err := q.read(r); err != nil {
		return err
	}
	return q.work(r)
}

// read reads the body.
func (q *request) read(r *http.Request) error {
	if r.Body == http.NoBody {
		return nil
	}
	q.limitReadTime(q.server.opts.ReadTimeout)
	if r.ContentLength > q.server.opts.MaxBodyBytes {
		return errTooLarge
	}
	if r.ContentLength > smallBody {
		if err := q.takeLargeTurn(r, r.ContentLength); err != nil {
			return err
		}
	}
	for {
		if err := q.makeRoom(r); err != nil {
			return err
		}
		n, err := r.Body.Read(q.body.room())
		q.body.length += int64(n)
		switch {
		case q.body.length > q.server.opts.MaxBodyBytes:
			return errTooLarge
		case err == io.EOF:
			return nil
		case err != nil:
			return incomplete(err)
		}
	}
}

func incomplete(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errTimeout
	}
	return errIncomplete
}

// makeRoom gives the body room for at least one more byte. A body whose length is not
// announced may turn out to be a large one.
func (q *request) makeRoom(r *http.Request) error {
	if q.body.length < q.body.capacity() {
		return nil
	}
	if len(q.body.chunks) > 0 && q.queue == nil {
		if q.body.length >= smallBody {
			if err := q.takeLargeTurn(r, q.server.opts.MaxBodyBytes); err != nil {
				return err
			}
		} else if err := q.charge(largeChunk); err != nil {
			return err
		}
	}
	q.body.grow()
	return nil
}

// charge takes memory from the budget of small bodies and answers. If there is none left, the
// slowest client is disconnected.
func (q *request) charge(n int64) error {
	q.conn.held.Add(n)
	if q.server.bytes.Add(n) > q.server.opts.MaxBytesInFlight/2 && !q.server.open.makeRoom() {
		return errOverCapacity
	}
	return nil
}

// largeRate is the rate in bytes a second at which a large body has to arrive when it has its
// turn, after largeStart.
const (
	largeRate  = 8 << 20
	largeStart = time.Second
)

func (q *request) takeLargeTurn(r *http.Request, length int64) error {
	if err := q.takeTurn(r, q.server.large, length); err != nil {
		return err
	}
	q.limitReadTime(largeStart + time.Duration(length)*time.Second/largeRate)
	return nil
}

func (q *request) takeTurn(r *http.Request, queue *queue, weight int64) error {
	q.turn = ticket{source: q.conn.source, weight: weight}
	if err := queue.acquire(r.Context(), q.conn, &q.turn, q.server.opts.ReadTimeout); err != nil {
		return err
	}
	q.queue = queue
	return nil
}

// work calls the handler.
func (q *request) work(r *http.Request) error {
	if !q.conn.enter(working) {
		return errGone
	}
	if q.queue == nil {
		if err := q.takeTurn(r, q.server.small, max(q.body.length, smallChunk)); err != nil {
			return err
		}
	}
	if r.Body != http.NoBody {
		// The length is known now, whatever the client has announced.
		r.Body, r.ContentLength = &q.body, q.body.length
	}
	q.server.mux.ServeHTTP(&q.answer, r)
	return nil
}

// reject answers with the status of an error.
func (q *request) reject(err error) {
	known, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		known = errIncomplete
	}
	switch known {
	case errOverCapacity:
		overCapacityTotal.Inc()
	case errGone:
	default:
		unreadTotal.WithLabelValues(string(known.ErrStatus.Reason)).Inc()
	}
	reject(&q.answer, known)
}

func reject(w http.ResponseWriter, err *apierrors.StatusError) {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
	}
	http.Error(w, err.Error(), int(err.ErrStatus.Code))
}

// limitReadTime bounds the time for the body. http.Server.ReadTimeout is no use: it
// counts from the accept of a connection that may have been idle since then.
func (q *request) limitReadTime(d time.Duration) {
	// If it fails, so does the read.
	_ = q.conn.SetReadDeadline(time.Now().Add(d))
}

// send ends the turn and sends the answer.
func (q *request) send() {
	q.release()
	q.conn.answered.Store(q.answer.code == http.StatusOK)
	q.conn.enter(writing)
	if size := q.answer.size(); size > 0 {
		// The work is done, so the answer is sent in any case.
		_ = q.charge(size)
	}
	if q.server.state.Load() == draining {
		q.answer.Header()["Connection"] = connectionClose
	}
	q.answer.send()
	q.answer.release()
	q.uncharge()
}

// release ends the turn and gives the memory of the body back.
func (q *request) release() {
	if q.queue != nil {
		q.queue.release(&q.turn)
		q.queue = nil
	}
	_ = q.body.Close()
	q.uncharge()
}

func (q *request) uncharge() { q.server.bytes.Add(-q.conn.held.Swap(0)) }
