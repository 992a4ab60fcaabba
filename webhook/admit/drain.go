// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"net/http"
	"time"
)

// drain ends the service without losing a request.
//
// What has to be avoided: a POST that was cut is not repeated by the API server,
// and the request that it belongs to fails. net/http's Shutdown cuts every
// connection that is idle at that moment, and a request may be on its way on it.
// HTTP/1.1 has no way for a server to announce that; it can only ask, in an
// answer, that the connection be closed after it. Hence three parts:
//
//   - Drain: Ready says no, so that the Service stops sending new connections
//     here. Until that is known on every node they are accepted as before. Every
//     answer carries "Connection: close", so every connection that is in use ends
//     in order, by agreement. The API server takes the connection that it used
//     last and each use ends one, so under load all are gone in a moment.
//   - Linger: no new connections. Those that were idle all the time are left
//     until the client closes them: 90 s after their last use in client-go, which
//     is over when Drain and Linger are together longer than that. A
//     request that comes after all is answered, and ends its connection. Most
//     shutdowns skip this part, because no connection is left.
//   - Grace: idle connections are cut, and work in flight may end.
//
// What remains at risk is a client that keeps idle connections for longer than
// Drain and Linger, and uses one in the very moment of the cut.
func (s *Server) drain(server *http.Server, conns *listener) {
	s.state.Store(draining)
	s.log.Info("Draining", "drain", s.opts.Drain, "linger", s.opts.Linger, "grace", s.opts.Grace)
	time.Sleep(s.opts.Drain)
	conns.refuse()
	select {
	case <-conns.gone:
	case <-time.After(s.opts.Linger):
		s.log.V(1).Info("Cutting idle connections")
	}
	s.finish(server)
}

// finish waits for work in flight and closes everything.
func (s *Server) finish(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Grace)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		s.log.Info("Requests were cut: Grace was too short for them", "inFlight", s.inFlight.Load())
		_ = server.Close() // All that it could say is that something is closed already.
	}
}

// closing is an http.ResponseWriter that asks the client to close the connection if
// the server drains when the answer begins, whenever the request came.
type closing struct {
	http.ResponseWriter
	server *Server
	begun  bool
}

var connectionClose = []string{"close"}

func (c *closing) WriteHeader(code int) {
	if !c.begun && c.server.state.Load() == draining {
		c.Header()["Connection"] = connectionClose
	}
	c.begun = true
	c.ResponseWriter.WriteHeader(code)
}

func (c *closing) Write(p []byte) (int, error) {
	if !c.begun {
		c.WriteHeader(http.StatusOK)
	}
	return c.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (c *closing) Unwrap() http.ResponseWriter { return c.ResponseWriter }
