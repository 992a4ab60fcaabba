// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// quota is what a server lets this process ask. All pods behind one address share what it has.
type quota struct {
	mutex sync.Mutex
	// until is when the next request may be sent.
	until time.Time
	// ends is when the quota is full again, and sent how many requests of this process it counts.
	ends time.Time
	sent int
	// inTurn is true while other pods use the quota too, or little of it is left: then one request at
	// a time is sent, so that each knows what the answer to the last one says. asking is how many have
	// no answer yet.
	inTurn bool
	asking int
	// margin is that of the current window.
	margin float64
}

// For each request that a pod has sent, so many more are left for each pod that is known of, or the
// last pod waits: in the first window those that are answered first do not know how many there are.
const firstMargin, laterMargin = 16.0, 2.0

// quota returns that of an item: servers count requests to their API, and for files, by themselves.
func (d *Downloader) quota(of *url.URL) *quota {
	kind, _, _ := strings.Cut(strings.TrimPrefix(of.Path, "/"), "/")
	return d.quotaOf(of.Host + "/" + kind)
}

func (d *Downloader) quotaOf(server string) *quota {
	found, _ := d.quotas.LoadOrStore(server, &quota{margin: firstMargin})
	return found.(*quota)
}

// wait waits until a request may be sent. answered is called when it has its answer.
func (q *quota) wait(ctx context.Context) error {
	for wait := q.ask(); wait > 0; wait = q.ask() {
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
	return nil
}

func (q *quota) ask() time.Duration {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	wait := time.Until(q.until)
	switch {
	case wait > 0:
		return wait
	case q.inTurn && q.asking > 0:
		return 10 * time.Millisecond
	}
	q.asking++
	return 0
}

func (q *quota) answered() {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.asking--
}

// hold lets all requests wait, because the server wants it.
func (d *Downloader) hold(q *quota, wait time.Duration) {
	q.mutex.Lock()
	until := time.Now().Add(wait)
	longer := until.Sub(q.until)
	if longer > 0 {
		q.until = until
	}
	q.mutex.Unlock()
	if min(wait, longer) > time.Second { // Several connections are told so at once.
		d.Log.Line("[RateLimited] the server has answered enough for now; the next request is sent at %s", until.UTC().Format(time.RFC3339))
	}
}

// heed holds all requests if this was the last one for now, or as many as are due to this pod, at
// the server that answers or one that has redirected to it.
func (d *Downloader) heed(q *quota, answer *http.Response) {
	for ; answer != nil && answer.StatusCode < 400; answer = answer.Request.Response {
		after := max(modeluri.Exhausted(answer.Header, time.Now()), d.spend(q, answer.Header))
		if after > 0 && after <= d.RetryFor {
			d.hold(q, after+time.Duration(d.Spread*float64(after)))
		}
	}
}

// inWindow matches what RateLimit says of a quota: its name, and how many requests are left until
// after how many seconds. RateLimit-Policy says how many there are in all.
var inWindow = regexp.MustCompile(`^("[^"]*");r=(\d+);t=(\d{1,9})\b`)

// spend counts an answered request, and returns how long to wait for the next one; 0 is not at all.
// Beyond a fifth of the quota, the less is left for each request of all pods, the more pods wait until
// it is full again: so those that start at once are answered without a refusal.
func (d *Downloader) spend(q *quota, header http.Header) time.Duration {
	says := inWindow.FindStringSubmatch(header.Get("RateLimit"))
	if says == nil {
		return 0
	}
	policy := regexp.MustCompile(regexp.QuoteMeta(says[1]) + `[^,]*;q=(\d+)`).FindStringSubmatch(header.Get("RateLimit-Policy"))
	if policy == nil {
		return 0
	}
	left, _ := strconv.Atoi(says[2]) // What overflows is as many as there can be.
	seconds, _ := strconv.Atoi(says[3])
	all, _ := strconv.Atoi(policy[1])
	after := time.Duration(seconds) * time.Second
	q.mutex.Lock()
	defer q.mutex.Unlock()
	now := time.Now()
	if !q.ends.IsZero() && !now.Before(q.ends) {
		q.sent, q.margin = 0, laterMargin
	}
	q.ends = now.Add(after)
	q.sent++
	used := all - left
	others := used > 2*q.sent
	scarce := max(1, d.Spread*q.margin)*float64(used) > float64(q.sent)*float64(left)
	q.inTurn = others || left < 2*d.Connections
	if others && scarce && used > all/5 {
		return after
	}
	return 0
}
