// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const (
	// maxMessage is the bound of the schema, in characters; messages are cut at as many bytes.
	maxMessage = 1024
	// maxRestarts is what the part of a message about restarts needs at most.
	maxRestarts = 48
	// maxRaw bounds what is read of a message. kubelet's are at most 12 kB for a pod.
	maxRaw = 8 << 10
	// maxReason is the bound of the schema.
	maxReason = 128
)

// What varies from one look to the next, or from one pod to the next, without another cause.
var varying = []struct {
	pattern *regexp.Regexp
	by      string
}{
	// "back-off 5m0s restarting failed container=x pod=y_z(uid)"
	{regexp.MustCompile(`\bback-off \S+ restarting`), "back-off restarting"},
	{regexp.MustCompile(` pod=\S+_\S+\([0-9a-f-]+\)`), ""},
	// The head of a line in the log: klog's, and a date with a time.
	{regexp.MustCompile(`\b[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ `), ""},
	{regexp.MustCompile(`\[?\b\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d([.,]\d+)?( ?(Z|UTC|[+-]\d\d:?\d\d)\b)?\]?`), ""},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d([.,]\d+)?\b`), ""},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uid>"},
	{regexp.MustCompile(`\b0x[0-9a-f]+\b`), "0x.."},
	// "read udp 10.244.0.5:51423->10.96.0.10:53": the local port.
	{regexp.MustCompile(`:\d+->`), "->"},
	// What an evicted pod used at that moment.
	{regexp.MustCompile(` ?Threshold quantity: .*`), ""},
}

// identifiers are the ids of containers and sandboxes. The digest of an image and the hashes
// of a model, which fetch-model names, are the same in all pods, and stay.
var identifiers = regexp.MustCompile(`(sha256(:| is | says ))?\b[0-9a-f]{64}\b`)

// colours are what programs write for a terminal.
var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// clean returns a message of the cluster as one line, without what varies from one look to
// the next or names a pod, and not longer than a message may be.
func clean(message, podName string) string {
	message = oneLine(colours.ReplaceAllString(rules.Cut(message, maxRaw), ""))
	if podName != "" {
		message = strings.ReplaceAll(message, podName, "<pod>")
	}
	for _, v := range varying {
		message = v.pattern.ReplaceAllString(message, v.by)
	}
	message = identifiers.ReplaceAllStringFunc(message, func(id string) string {
		if strings.HasPrefix(id, "sha256") {
			return id
		}
		return "<id>"
	})
	return rules.Cut(strings.Join(strings.Fields(message), " "), maxMessage-maxRestarts)
}

// oneLine replaces control characters by spaces, and removes what is not valid UTF-8.
func oneLine(text string) string {
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text), "")
}

// lastLine returns the last line of a text that is not empty.
func lastLine(text string) string {
	if len(text) > maxRaw {
		text = text[len(text)-maxRaw:]
	}
	text = strings.TrimSpace(text)
	return text[strings.LastIndexAny(text, "\r\n")+1:]
}

// letters returns the letters of a text. Two messages that differ only in numbers are the
// same for the question of whether anything has changed.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, text)
}

var word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// reasonOr returns a reason of the cluster, or another one if it is not one word.
func reasonOr(reason, otherwise string) string {
	if len(reason) > maxReason || !word.MatchString(reason) {
		return otherwise
	}
	return reason
}

// atLeast rounds a number down to 1, 2 or 5 times a power of ten, so that a higher number is
// seldom another message.
func atLeast(n int32) int32 {
	for power := int64(1_000_000_000); power > 0; power /= 10 {
		for _, digit := range []int64{5, 2, 1} {
			if step := digit * power; int64(n) >= step {
				return int32(step) //nolint:gosec // It is not greater than n.
			}
		}
	}
	return 0
}

// restarted returns how often a container was restarted, rounded, "" for never.
func restarted(times int32) string {
	switch n := atLeast(times); n {
	case 0:
		return ""
	case 1:
		return "restarted at least once"
	default:
		return fmt.Sprintf("restarted at least %d times", n)
	}
}
