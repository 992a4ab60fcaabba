// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// gate blocks readers while it is shut.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // Closed when the gate opens.
}

func openGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
		g.open = make(chan struct{})
	default:
	}
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// wait waits until the gate is open. It returns false if the context or the stream
// ends before.
func (g *gate) wait(ctx context.Context, ended <-chan struct{}) bool {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
		return true
	case <-ctx.Done():
	case <-ended:
	}
	return false
}

// oldList makes the next list of a resource return an old version.
type oldList struct {
	version string
	// expired is how many watch requests still get the status 410.
	expired int
}

// PauseWatches delays the watch events of resources until ResumeWatches.
func (t *Transport) PauseWatches(resources ...string) {
	for _, resource := range resources {
		t.gate(resource).shut()
	}
}

// ResumeWatches delivers the delayed watch events of resources, and does not delay new ones.
func (t *Transport) ResumeWatches(resources ...string) {
	for _, resource := range resources {
		t.gate(resource).release()
	}
}

// CloseWatches ends the open watches of resources.
func (t *Transport) CloseWatches(resources ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.streams {
		for _, resource := range resources {
			if s.resource == resource {
				s.end()
			}
		}
	}
}

// Rewind makes the client see resources at an old version again: the open watches end,
// the next watch request gets the status 410, and the following list returns the old
// version. The watch events after it are delayed until ResumeWatches.
func (t *Transport) Rewind(version string, resources ...string) {
	t.StartFrom(version, resources...)
	t.mu.Lock()
	for _, resource := range resources {
		t.old[resource].expired = 1
	}
	t.mu.Unlock()
	t.CloseWatches(resources...)
}

// StartFrom makes the first list of resources return an old version. The watch events after
// it are delayed until ResumeWatches.
func (t *Transport) StartFrom(version string, resources ...string) {
	t.PauseWatches(resources...)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, resource := range resources {
		t.old[resource] = &oldList{version: version}
	}
}

// Relisted reports whether the resources were listed since Rewind or StartFrom.
func (t *Transport) Relisted(resources ...string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, resource := range resources {
		if t.old[resource] != nil {
			return false
		}
	}
	return true
}

func (t *Transport) gate(resource string) *gate {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gates[resource] == nil {
		t.gates[resource] = openGate()
	}
	return t.gates[resource]
}

// read handles list and watch requests.
func (t *Transport) read(next http.RoundTripper, request *http.Request, target target) (*http.Response, error) {
	if target.namespace != "" {
		return next.RoundTrip(request)
	}
	request, answer := t.rewind(request, target)
	if answer != nil {
		return answer, nil
	}
	answer, err := next.RoundTrip(request)
	if err != nil || !target.watches || answer.StatusCode != http.StatusOK {
		return answer, err
	}
	s := &stream{ReadCloser: answer.Body, transport: t, resource: target.resource, ctx: request.Context(), ended: make(chan struct{})}
	t.mu.Lock()
	t.streams[s] = struct{}{}
	t.mu.Unlock()
	answer.Body = s
	return answer, nil
}

// rewind returns the request for an old list, or a response that makes the client send
// one: 410 for a watch, and then 422 for a watch with sendInitialEvents, as from an API
// server without streaming lists.
func (t *Transport) rewind(request *http.Request, target target) (*http.Request, *http.Response) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.old[target.resource]
	query := request.URL.Query()
	switch {
	case old == nil:
		return request, nil
	case old.expired > 0 && target.watches:
		old.expired--
		return nil, statusAnswer(request, http.StatusGone, "Expired")
	case target.watches && query.Get("sendInitialEvents") == "true":
		return nil, statusAnswer(request, http.StatusUnprocessableEntity, "Invalid")
	case target.lists:
		delete(t.old, target.resource)
		request = request.Clone(request.Context())
		query.Set("resourceVersion", old.version)
		query.Set("resourceVersionMatch", "Exact")
		query.Del("limit")
		request.URL.RawQuery = query.Encode()
	}
	return request, nil
}

// stream is the body of a watch.
type stream struct {
	io.ReadCloser
	transport *Transport
	resource  string
	ctx       context.Context // The request's context, whose end also ends the body.
	once      sync.Once
	ended     chan struct{}
}

// Read returns data when the gate is open.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if !s.transport.gate(s.resource).wait(s.ctx, s.ended) {
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// end ends the watch. Delayed events are lost.
func (s *stream) end() {
	s.once.Do(func() { close(s.ended) })
	_ = s.ReadCloser.Close()
}

// Close ends the watch.
func (s *stream) Close() error {
	s.transport.mu.Lock()
	delete(s.transport.streams, s)
	s.transport.mu.Unlock()
	return s.ReadCloser.Close()
}
