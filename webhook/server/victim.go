// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/netip"
	"time"
)

// class is the order in which connections are disconnected.
type class int

const (
	// neverServed: no request has been answered with 200 on it.
	neverServed class = iota
	// slow: its client sends a request, or reads an answer, slowly.
	slow
	// longIdle: its client may be about to send a request, which would be lost; so it is
	// the last.
	longIdle
	// needed: it is new, or its request is being worked on. It is never disconnected.
	needed
	// holding: it is slow, and holds memory that another request needs. This is not one of
	// the order, but the reason why the connection is disconnected.
	holding
)

// String returns the value of the label reason.
func (c class) String() string {
	return [...]string{"never_served", "slow", "idle", "", "memory"}[c]
}

// standing is what a connection does at some moment.
type standing struct {
	conn   *conn
	source netip.Addr
	state  int64
	class  class
	// age is how long it has been in the class.
	age time.Duration
}

// classOf returns the class of a connection, and for how long it has been in it. A source that
// crowds out others cannot keep its connections by a new request on each of them.
func classOf(state int64, c *conn, crowding bool, now time.Time) (class, time.Duration) {
	current, since := unpack(state)
	if current == working || current == disconnected || !crowding && now.Sub(since) < settled {
		return needed, 0
	}
	switch {
	case !c.served.Load():
		return neverServed, now.Sub(c.accepted)
	case current == idle:
		return longIdle, now.Sub(since)
	}
	return slow, now.Sub(since)
}

// choose returns the connection to disconnect: of the first class that has any, of the source
// that has the most in it, the oldest. So a source cannot take the connections of another one
// that has fewer. The connections of the protected source come after those of all others in
// their class.
func choose(all []standing, protected netip.Addr) *standing {
	first, bySource := needed, map[netip.Addr]int{}
	for i := range all {
		if all[i].class < first {
			first = all[i].class
			clear(bySource)
		}
		if all[i].class == first {
			bySource[all[i].source]++
		}
	}
	if first == needed {
		return nil
	}
	source := largest(bySource, protected)
	return oldest(all, func(s *standing) bool { return s.class == first && s.source == source })
}

// largest returns the source with the most connections, and the protected one only if there
// is no other.
func largest(bySource map[netip.Addr]int, protected netip.Addr) netip.Addr {
	var largest netip.Addr
	most := 0
	for source, n := range bySource {
		if source == protected && protected.IsValid() {
			n = 0
		}
		if n > most || most == 0 || n == most && source.Less(largest) {
			largest, most = source, n
		}
	}
	return largest
}

// slowest returns the connection that has been slow for the longest time while it holds
// memory, nil if there is none.
func slowest(all []standing) *standing {
	found := oldest(all, func(s *standing) bool { return s.class < longIdle && s.conn.held.Load() > 0 })
	if found != nil {
		found.class = holding
	}
	return found
}

func oldest(all []standing, eligible func(*standing) bool) *standing {
	var found *standing
	for i := range all {
		if s := &all[i]; eligible(s) && (found == nil || s.age > found.age) {
			found = s
		}
	}
	return found
}
