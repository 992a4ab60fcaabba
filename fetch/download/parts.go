// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import "slices"

// part is a missing part of a file: from begin to end, which is math.MaxInt64 where the size is unknown.
type part struct {
	begin, end int64
	// taken is true while a connection fetches it.
	taken bool
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

// take takes the first part that no connection fetches, and at most a chunk of it; nil is none. A chunk of 0 bytes is all of it.
func (p *parts) take(chunk int64) *part {
	i := slices.IndexFunc(*p, func(each *part) bool { return !each.taken })
	if i < 0 {
		return nil
	}
	(*p)[i].taken = true
	p.split((*p)[i], chunk)
	return (*p)[i]
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

// give gives back what is left of a part.
func (p *parts) give(taken *part) {
	if taken.taken = false; taken.begin >= taken.end {
		*p = slices.DeleteFunc(*p, func(each *part) bool { return each == taken })
	}
}
