// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"net/http"
	"time"
)

// step is how often a paced response continues.
const step = 100 * time.Millisecond

// paced writes as many bytes in each step as the whole file needs to take its time.
type paced struct {
	http.ResponseWriter
	ended <-chan struct{}
	chunk int
}

// pace returns a writer that takes a time for a file of a size. A part of the file takes a part
// of the time.
func pace(w http.ResponseWriter, r *http.Request, size int, whole time.Duration) http.ResponseWriter {
	return &paced{ResponseWriter: w, ended: r.Context().Done(), chunk: int(int64(size)*int64(step)/max(int64(whole), int64(step))) + 1}
}

func (p *paced) Write(content []byte) (written int, err error) {
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	for len(content) > 0 && err == nil {
		select {
		case <-ticker.C:
		case <-p.ended:
			return written, http.ErrAbortHandler
		}
		var n int
		n, err = p.ResponseWriter.Write(content[:min(p.chunk, len(content))])
		written, content = written+n, content[n:]
		_ = http.NewResponseController(p.ResponseWriter).Flush() // The next Write reports what is wrong.
	}
	return written, err
}

// cutting ends the connection in the middle of a response.
type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(content []byte) (int, error) {
	n, err := c.ResponseWriter.Write(content[:min(c.left, len(content))])
	c.left -= n
	if err != nil || n == len(content) {
		return n, err
	}
	_ = http.NewResponseController(c.ResponseWriter).Flush() // The connection ends either way.
	panic(http.ErrAbortHandler)
}
