// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import "time"

// longest is for how long at most a process leaves a server alone because of what an earlier one was
// answered: the clock may have been set back since.
const longest = time.Hour

// Held returns until when which servers want to be left alone, for a later process.
func (d *Downloader) Held() map[string]time.Time {
	held := map[string]time.Time{}
	d.quotas.Range(func(server, found any) bool {
		q := found.(*quota)
		q.mutex.Lock()
		defer q.mutex.Unlock()
		if time.Until(q.until) > 0 {
			held[server.(string)] = q.until
		}
		return true
	})
	return held
}

// Hold sends no request to servers before what Held has returned in an earlier process.
func (d *Downloader) Hold(held map[string]time.Time) {
	for server, until := range held {
		if wait := time.Until(until); wait > 0 && wait <= longest {
			d.hold(d.quotaOf(server), wait)
		}
	}
}
