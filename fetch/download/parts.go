// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"slices"
	"time"
)

const (
	// slowPart is how long a connection may need for the rest of its part before others that are
	// free take of it.
	slowPart = 2 * time.Second
	// minPart is the least of a part, in bytes, that is worth a request of its own.
	minPart = 4 << 20
)

// part is a missing part of a file: from begin to end, which is math.MaxInt64 where the size is
// unknown.
type part struct {
	begin, end int64
	// taken is true while a connection fetches it, since a time and a place. cancel ends its
	// request.
	taken  bool
	since  time.Time
	first  int64
	cancel func()
	// relieved is true for what a slow connection has lost as a whole, which happens once.
	relieved bool
}

// rest estimates how long the connection of a part needs for the rest of it.
func (p *part) rest() time.Duration {
	spent := time.Since(p.since)
	if p.end-p.begin > 1<<50 || spent < slowPart || p.begin >= p.end {
		return 0
	}
	return time.Duration(float64(spent) * float64(p.end-p.begin) / float64(max(1, p.begin-p.first)))
}

// parts are what is missing of a file, in order.
type parts []*part

// size cuts what is missing at the size of the file, once it is known.
func (p *parts) size(size int64) {
	for _, each := range *p {
		each.end = min(each.end, size)
	}
	*p = slices.DeleteFunc(*p, func(each *part) bool { return each.begin >= each.end && !each.taken })
}

// take takes the first part that no connection fetches, and at most a chunk of it, or what a slow
// one loses; nil is none. A chunk of 0 bytes is all of it. cancel ends the request for it.
func (p *parts) take(chunk int64, cancel func()) *part {
	i := slices.IndexFunc(*p, func(each *part) bool { return !each.taken })
	if i < 0 {
		i = p.relieve()
	}
	if i < 0 {
		return nil
	}
	taken := (*p)[i]
	taken.taken, taken.since, taken.first, taken.cancel = true, time.Now(), taken.begin, cancel
	p.split(taken, chunk)
	return taken
}

// relieve frees half of the part that needs the longest, or all of it if nothing of it came, or
// little is left. It returns its place, or -1.
func (p *parts) relieve() int {
	if len(*p) == 0 {
		return -1
	}
	slowest := slices.MaxFunc(*p, func(a, b *part) int { return int(a.rest()/time.Millisecond - b.rest()/time.Millisecond) })
	middle := slowest.begin
	if left := slowest.end - slowest.begin; slowest.begin > slowest.first && left >= 2*minPart {
		middle += left / 2
	}
	all := middle == slowest.begin
	if slowest.rest() <= slowPart || all && slowest.relieved {
		return -1
	}
	i := slices.Index(*p, slowest) + 1
	*p = slices.Insert(*p, i, &part{begin: middle, end: slowest.end, relieved: all})
	if slowest.end = middle; all {
		slowest.cancel()
	}
	return i
}

// split leaves a part at most a chunk, and frees the rest.
func (p *parts) split(from *part, chunk int64) {
	if chunk == 0 {
		return
	}
	if end := from.begin/chunk*chunk + chunk; end < from.end {
		*p = slices.Insert(*p, slices.Index(*p, from)+1, &part{begin: end, end: from.end})
		from.end = end
	}
}

// join adds to a part what follows it and no connection fetches.
func (p *parts) join(to *part) {
	for i := slices.Index(*p, to) + 1; i < len(*p) && !(*p)[i].taken && (*p)[i].begin == to.end; {
		to.end = (*p)[i].end
		*p = slices.Delete(*p, i, i+1)
	}
}

// give gives back what is left of a part.
func (p *parts) give(taken *part) {
	if taken.taken = false; taken.begin >= taken.end {
		*p = slices.DeleteFunc(*p, func(each *part) bool { return each == taken })
	}
}
