// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"io"
	"net/http"
)

// admit lets a request in if there is room for it. It is counted before its body
// is read: what waits for a body costs as much as what is being decided.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) {
	inFlight.Inc()
	defer inFlight.Dec()
	defer s.inFlight.Add(-1)
	guest := &guest{closing: closing{ResponseWriter: w, server: s}, meter: meter{ReadCloser: r.Body, server: s}}
	defer guest.leave()
	switch {
	case s.inFlight.Add(1) > s.opts.MaxInFlight:
		overCapacityTotal.Inc()
		reject(&guest.closing, errBusy)
	case r.ContentLength > s.opts.MaxBodyBytes:
		reject(&guest.closing, errTooLarge)
	default:
		r.Body = &guest.meter
		s.mux.ServeHTTP(&guest.closing, r)
	}
}

// guest is what the server adds to a request that it has let in.
type guest struct {
	closing
	meter
}

// meter is a request's body, counted as it is read.
type meter struct {
	io.ReadCloser
	server *Server
	read   int64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.read += int64(n)
	switch total := m.server.bytes.Add(int64(n)); {
	case m.read > m.server.opts.MaxBodyBytes:
		return n, errTooLarge
	case total > m.server.opts.MaxBytesInFlight:
		overCapacityTotal.Inc()
		return n, errBusy
	}
	return n, err
}

func (m *meter) leave() { m.server.bytes.Add(-m.read) }
