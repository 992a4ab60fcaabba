// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// settled is the time after which a connection may be disconnected if it has not come any
// further: long enough for a handshake, or a body that is not slow.
const settled = 250 * time.Millisecond

// connections are the open connections of a server. When they are as many as it may have, a
// new one takes the place of the one that needs it least: see victim.
type connections struct {
	// port is a label of the metrics.
	port  string
	max   int
	gauge prometheus.Gauge

	mu   sync.Mutex
	open map[*conn]struct{}
	from map[netip.Addr]*tally
	// leaving are those that are disconnected and not removed yet.
	leaving int
	// list has the memory of standings.
	list []standing
	// removed has an element when a connection has been removed.
	removed chan struct{}
}

// tally is what the server knows of a source while it has connections.
type tally struct {
	open   int
	served atomic.Int64
}

func newConnections(port string, most int) *connections {
	return &connections{port: port, max: most, gauge: connectionsOpen.WithLabelValues(port), open: map[*conn]struct{}{}, from: map[netip.Addr]*tally{}, removed: make(chan struct{}, 1)}
}

// admit adds a connection as soon as there is room. It returns false if closed is closed
// before. While it waits, new connections are in the backlog of the listener.
func (cs *connections) admit(c *conn, closed <-chan struct{}) bool {
	for !cs.add(c) {
		select {
		case <-cs.removed:
		case <-time.After(settled / 10): // Another one may have settled.
		case <-closed:
			return false
		}
	}
	return true
}

// add adds a connection if there is room, or if it can make room. It does not wait until those
// that are disconnected have ended, as long as they are few.
func (cs *connections) add(c *conn) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.open)-cs.leaving >= cs.max {
		cs.disconnect(cs.victim(time.Now()))
	}
	if len(cs.open)-cs.leaving >= cs.max || len(cs.open) >= cs.max+cs.max/8 {
		return false
	}
	cs.open[c] = struct{}{}
	c.from = cs.from[c.source]
	if c.from == nil {
		c.from = new(tally)
		cs.from[c.source] = c.from
	}
	c.from.open++
	cs.gauge.Inc()
	return true
}

// remove removes a connection that ends.
func (cs *connections) remove(c *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if _, ok := cs.open[c]; !ok {
		return
	}
	delete(cs.open, c)
	cs.gauge.Dec()
	if c.from.open--; c.from.open == 0 {
		delete(cs.from, c.source)
	}
	if c.phase() == disconnected {
		cs.leaving--
	}
	select {
	case cs.removed <- struct{}{}:
	default:
	}
}

// disconnect disconnects a connection to make room, if it has not come further meanwhile.
func (cs *connections) disconnect(s *standing) {
	if s != nil && s.conn.disconnect(s.state) {
		cs.leaving++
		disconnectedTotal.WithLabelValues(cs.port, s.class.String()).Inc()
	}
}

// standings returns what the open connections do. It holds until the next call.
func (cs *connections) standings(now time.Time) []standing {
	clear(cs.list)
	all := cs.list[:0]
	for c := range cs.open {
		s := standing{conn: c, state: c.state.Load(), source: c.source}
		s.class, s.age = classOf(s.state, c, c.from.open > cs.max/len(cs.from), now)
		all = append(all, s)
	}
	cs.list = all
	return all
}

// victim returns the connection that a new one takes the place of, nil if there is none.
func (cs *connections) victim(now time.Time) *standing {
	return choose(cs.standings(now), cs.protected())
}

// protected returns the source that has completed the most requests, if it has no more than
// half of all connections: it may be an address that many API servers have in common.
func (cs *connections) protected() netip.Addr {
	var best netip.Addr
	most := int64(0)
	for source, t := range cs.from {
		if n := t.served.Load(); n > most {
			best, most = source, n
		}
	}
	if most == 0 || cs.from[best].open > cs.max/2 {
		return netip.Addr{}
	}
	return best
}

// makeRoom disconnects the connection that has held memory of the budget for the longest
// time while its client sends or reads slowly. It returns false if there is none.
func (cs *connections) makeRoom() bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	oldest := slowest(cs.standings(time.Now()))
	cs.disconnect(oldest)
	return oldest != nil
}
