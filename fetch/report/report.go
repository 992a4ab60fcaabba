// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report writes what the fetcher does: a line for each step, the progress at an interval, and the last word for
// the container's termination message.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// maxLastWord is how many bytes of the last word the termination message has, maxLine how many a line of the log has, and maxSuccess how many of
// a termination message the kubelet reads.
const maxLastWord, maxLine, maxSuccess = 1024, 4096, 4096

// Log writes lines. Its methods may be called concurrently; a nil Log writes nothing.
type Log struct {
	mutex sync.Mutex
	to    io.Writer
	// secrets are what no line shows, in lower case, the longest first.
	secrets []string
}

// NewLog returns a log that writes to a writer.
func NewLog(to io.Writer) *Log { return &Log{to: to} }

// Line writes one line. The format is fmt.Printf's.
func (l *Log) Line(format string, args ...any) {
	if l == nil {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	fmt.Fprintln(l.to, failure.Cut(l.clean(fmt.Sprintf(format, args...)), maxLine))
}

// LastWord writes a failure as the last line of the log, and into the termination log, at most 1 KiB of it. The container
// runtime has made that file where there is one.
func (l *Log) LastWord(terminationLog string, last *failure.Failure) {
	l.mutex.Lock()
	text := failure.Cut(l.clean(last.Error()), maxLastWord)
	l.mutex.Unlock()
	l.Line("%s", text)
	l.terminate(terminationLog, text)
}

// Success writes what is complete into the termination log, as JSON.
func (l *Log) Success(terminationLog string, models []modeluri.Fetched) {
	text, _ := json.Marshal(modeluri.Message{Models: models}) // It has nothing that is no JSON.
	if len(text) <= maxSuccess {
		l.terminate(terminationLog, string(text))
	}
}

func (l *Log) terminate(terminationLog, text string) {
	if terminationLog == "" {
		return
	}
	if err := os.WriteFile(terminationLog, []byte(text), 0o600); err != nil {
		l.Line("the termination message cannot be written: %v", err)
	}
}
