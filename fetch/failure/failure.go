// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package failure has the errors that end a fetch: one sentence that says what is wrong and what to do about it, after
// a stable word for programs.
package failure

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
)

// Word is the stable word that a failure's message begins with, in brackets. The controller and alerts may depend on it.
type Word string

const (
	// NotFound is a server's 404 or 410, or a bucket, key, model or commit that does not exist.
	NotFound Word = "NotFound"
	// Denied is a server's 401, 403 or 407, and a volume that the container's user may not write.
	Denied Word = "Denied"
	// WrongHash is a file that differs from spec.model.sha256, or from the hash that the hub publishes.
	WrongHash Word = "WrongHash"
	// RefusedArchive is an archive that is damaged, is of another format than its name says, or has an entry that is
	// never unpacked.
	RefusedArchive Word = "RefusedArchive"
	// TooBig is a model with more bytes than spec.model.sizeLimit, too many files, or too high a compression ratio.
	TooBig Word = "TooBig"
	// NoSpace is a volume without free space.
	NoSpace Word = "NoSpace"
	// Unreachable is a server that did not answer, or not usably, for as long as is retried.
	Unreachable Word = "Unreachable"
	// RateLimited is a server that has answered enough for now, for longer than is waited.
	RateLimited Word = "RateLimited"
	// Refused is a server or redirect that the fetcher does not follow, and a certificate that it does not trust.
	Refused Word = "Refused"
	// Invalid is a URI, flag or variable that has no meaning.
	Invalid Word = "Invalid"
	// Interrupted is a fetch that SIGTERM or SIGINT ended.
	Interrupted Word = "Interrupted"
	// Failed is every other error, such as an I/O error of the volume.
	Failed Word = "Failed"
)

// Failure is an error that another attempt does not cure.
type Failure struct {
	Word Word
	err  error
}

// New returns a *Failure. The format is fmt.Errorf's, and makes one sentence with the way out.
func New(word Word, format string, args ...any) error {
	return &Failure{Word: word, err: fmt.Errorf(format, args...)}
}

// Error returns the word in brackets and the sentence.
func (f *Failure) Error() string { return "[" + string(f.Word) + "] " + f.err.Error() }

// Unwrap returns what the sentence was made of.
func (f *Failure) Unwrap() error { return errors.Unwrap(f.err) }

// Of returns the failure that err is or wraps. Any other error becomes one: errors of the volume by their number, and
// the rest with the word Failed.
func Of(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	full := []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
	word, sentence := Failed, "the fetch failed, and is tried again when the container restarts"
	switch {
	case slices.ContainsFunc(full, func(each error) bool { return errors.Is(err, each) }):
		word, sentence = NoSpace, "no space is left on the volume: raise spec.model.sizeLimit, or use a larger volume or node disk"
	case errors.Is(err, syscall.EROFS):
		word, sentence = Denied, "the volume is read-only: fetch into a volume that can be written"
	case errors.Is(err, fs.ErrPermission):
		word, sentence = Denied, "the container's user may not write the volume: set securityContext.fsGroup of the pod to a group of the volume"
	case errors.Is(err, context.Canceled):
		word, sentence = Interrupted, "the fetch was interrupted; the next start fetches again"
	}
	return &Failure{Word: word, err: fmt.Errorf("%s: %w", sentence, err)}
}

// Cut returns at most size bytes of a text, with "..." for what is missing from its middle, and no
// part of a character: how a sentence ends says what to do.
func Cut(text string, size int) string {
	const rest = "..."
	if len(text) <= size {
		return text
	}
	begin := (size - len(rest)) * 2 / 3
	end := len(text) - (size - len(rest) - begin)
	return strings.ToValidUTF8(text[:begin], "") + rest + strings.ToValidUTF8(text[end:], "")
}
