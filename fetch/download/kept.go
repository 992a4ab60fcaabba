// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"time"
)

// saveEvery is how often what is kept is saved.
const saveEvery = time.Second

// Kept says what a file has of an item, so that a later process continues. It is not believed: the item's hash proves in the end that
// the whole file is the item, and without a hash nothing is kept.
type Kept struct {
	// ETag and Size are what the server said of the item. Where nothing is missing, the file is verified, and no server is asked.
	ETag string `json:"etag,omitempty"`
	Size int64  `json:"size"`
	// Missing are the parts that were not fetched: the first byte, and the one after the last.
	Missing [][2]int64 `json:"missing,omitempty"`
}

// keep continues what is kept, or empties the file.
func (t *transfer) keep() error {
	kept := t.item.Kept
	if kept == nil || !t.accepts(kept) {
		return t.to.Truncate(0)
	}
	t.written, t.parts = kept.Size, nil
	for _, each := range kept.Missing {
		t.parts = append(t.parts, &part{begin: each[0], end: each[1]})
		t.written -= each[1] - each[0]
	}
	t.etag, t.total, t.several, t.furthest = kept.ETag, kept.Size, true, t.written
	if t.item.Size < 0 {
		t.d.Counter.Total(kept.Size)
	}
	t.d.Counter.Kept(t.written)
	return t.to.Truncate(kept.Size) // Whatever the file has lost or got since, its hash is that of so many bytes.
}

// accepts is true for what can be continued: its parts are in order, within the file, and of one that can be asked for.
func (t *transfer) accepts(kept *Kept) bool {
	if t.item.Hash.Want == "" || kept.Size <= 0 || t.fits(kept.Size) != nil || t.item.Size >= 0 && kept.Size != t.item.Size {
		return false
	}
	end := int64(0)
	for _, each := range kept.Missing {
		if each[0] < end || each[1] <= each[0] || each[1] > kept.Size {
			return false
		}
		end = each[1]
	}
	return end == 0 || strong(kept.ETag) != ""
}

// save tells what a later process can continue from.
func (t *transfer) save() {
	if t.item.Save == nil || t.item.Hash.Want == "" {
		return
	}
	var kept *Kept
	t.mutex.Lock()
	t.saved = time.Now()
	if t.etag != "" && t.total >= 0 && t.written > 0 {
		kept = &Kept{ETag: t.etag, Size: t.total}
		for _, each := range t.parts {
			if each.begin < each.end {
				kept.Missing = append(kept.Missing, [2]int64{each.begin, each.end})
			}
		}
	}
	t.mutex.Unlock()
	t.item.Save(kept)
}
