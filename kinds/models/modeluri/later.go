// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modeluri

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Later returns how long after now a server wants to be left alone, by Retry-After (RFC 9110,
// 10.2.3: seconds or a date), RateLimit (draft-ietf-httpapi-ratelimit-headers), or a reset in
// seconds or as Unix time. 0 is not said.
func Later(header http.Header, now time.Time) time.Duration {
	for _, after := range []time.Duration{
		until(header.Get("Retry-After"), now), Exhausted(header, now),
		until(header.Get("RateLimit-Reset"), now), until(header.Get("X-RateLimit-Reset"), now),
	} {
		if after > 0 {
			return after
		}
	}
	return 0
}

// until reads a number of seconds, or of those since 1970, or a date. What is none of them is 0.
func until(text string, now time.Time) time.Duration {
	if date, err := http.ParseTime(text); err == nil {
		return date.Sub(now)
	}
	number, err := strconv.ParseInt(text, 10, 34)
	if err != nil {
		return 0
	}
	if number > 1e8 {
		return time.Unix(number, 0).Sub(now)
	}
	return time.Duration(number) * time.Second
}

// What a member of RateLimit says: how many requests are left, and after how many seconds there are
// more.
var remaining, reset = regexp.MustCompile(`\b(?:r|remaining)=(\d+)`), regexp.MustCompile(`\b(?:t|reset)=(\d+)`)

// Exhausted returns how long after now the last quota of RateLimit that has nothing left is full
// again; 0 or less is none.
func Exhausted(header http.Header, now time.Time) (after time.Duration) {
	for member := range strings.SplitSeq(strings.Join(header.Values("RateLimit"), ","), ",") {
		left, again := remaining.FindStringSubmatch(member), reset.FindStringSubmatch(member)
		if again != nil && (left == nil || left[1] == "0") {
			after = max(after, until(again[1], now))
		}
	}
	return after
}
