// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// drain ends the service without losing a request.
//
// What has to be avoided: the API server does not repeat a POST whose connection was
// closed, and the request that it belongs to fails. net/http's Shutdown closes every
// connection that is idle at that moment, and a request may just have been sent on it.
// HTTP/1.1 has no way for a server to announce that; a server can only request, in an
// answer, that the client close the connection after it. Hence three parts:
//
//   - Drain: Ready returns an error, so that the Service stops sending new connections
//     here. Until every node knows that, they are accepted as before. Every
//     answer carries "Connection: close", so every connection that is in use ends
//     in order, by agreement. The API server takes the connection that it used
//     last and each use ends one, so under load all are gone in a moment.
//   - Linger: no new connections. Those that were idle all the time are left
//     until the client closes them: 90 s after their last use in client-go, which
//     is over when Drain and Linger are together longer than that. A
//     request that still comes is answered, and ends its connection. Most
//     shutdowns skip this part, because no connection is left.
//   - Grace: idle connections are closed, and requests in flight may end.
//
// What remains at risk is a client that keeps idle connections for longer than
// Drain and Linger, and uses one at the very moment when it is closed.
func (s *Server) drain(server *http.Server, conns net.Listener, ended <-chan error) error {
	s.state.Store(draining)
	s.log.Info("Draining", "drain", s.opts.Drain, "linger", s.opts.Linger, "grace", s.opts.Grace)
	time.Sleep(s.opts.Drain)
	_ = conns.Close() // It may be closed already.
	err := <-ended
	select {
	case <-s.noConnections():
	case <-time.After(s.opts.Linger):
		s.log.V(1).Info("Closing idle connections")
	}
	s.finish(server)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// finish waits for requests in flight and closes everything.
func (s *Server) finish(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Grace)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		s.log.Info("Requests were cut: Grace was too short for them", "inFlight", s.inFlight.Load())
		_ = server.Close() // It can only report that something is closed already.
	}
}

// countConnections is the ConnState of the http.Server.
func (s *Server) countConnections(c net.Conn, state http.ConnState) {
	c.(*tlsConn).changed(state)
	switch state {
	case http.StateNew:
		s.connections.Add(1)
	case http.StateClosed:
		s.connections.Done()
	}
}

// noConnections returns a channel that is closed when no connection is left. No
// connection may be accepted any more.
func (s *Server) noConnections() <-chan struct{} {
	none := make(chan struct{})
	go func() {
		s.connections.Wait()
		close(none)
	}()
	return none
}

// connectionClose is the header of an answer that requests the client to close the connection.
// It is set if the server drains when the answer begins, even if the request came before.
var connectionClose = []string{"close"}
