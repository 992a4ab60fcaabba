// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// errDied is what a process that died gets for an answer.
var errDied = errors.New("the process died")

// errLost is how a client learns that an answer will not come.
var errLost = fmt.Errorf("reading the answer: %w", io.ErrUnexpectedEOF)

// Transport is what lies between one controller process and the API server. Requests
// get the faults that are planned for their namespace; watches can be held back, cut,
// and made to begin with an old list. Use it by rest.Config.Wrap.
type Transport struct {
	mu      sync.Mutex
	planned map[string]*requests
	// gates are, by resource, closed while the resource's watches are to be silent.
	gates map[string]*gate
	// old are, by resource, the version that the next list shows.
	old map[string]*oldList
	// streams are the watches that are open.
	streams map[*stream]struct{}
}

// requests are what a namespace's writes are to meet, and how many there were.
type requests struct {
	faults map[int]RequestFault
	writes int
	hit    int
	dead   bool
}

// NewTransport is a transport without faults.
func NewTransport() *Transport {
	return &Transport{
		planned: map[string]*requests{}, gates: map[string]*gate{}, old: map[string]*oldList{}, streams: map[*stream]struct{}{},
	}
}

// Wrap implements the type of rest.Config.WrapTransport. All that it returns is the
// same transport.
func (t *Transport) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) { return t.roundTrip(next, r) })
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Plan plans faults for the writes of a namespace that come from now on, by their
// number, which begins with 1.
func (t *Transport) Plan(namespace string, faults map[int]RequestFault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.planned[namespace] = &requests{faults: faults}
}

// Writes is how many writes of a namespace there were since Plan, and how many of
// them met a fault.
func (t *Transport) Writes(namespace string) (writes, hit int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.planned[namespace]
	return r.writes, r.hit
}

// Dead tells whether the process died for a namespace.
func (t *Transport) Dead(namespace string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.planned[namespace].dead
}

func (t *Transport) roundTrip(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	target := targetOf(request)
	if target.watches || target.lists {
		return t.read(next, request, target)
	}
	fault, dead := t.faultOf(target)
	switch {
	case dead:
		return nil, errDied
	case fault == "":
		return next.RoundTrip(request)
	}
	return fault.do(next, request)
}

// faultOf counts a write, and is the fault that it meets.
func (t *Transport) faultOf(target target) (fault RequestFault, dead bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.planned[target.namespace]
	if r == nil || target.resource == "events" {
		return "", false
	}
	if r.dead || !target.writes {
		return "", r.dead
	}
	r.writes++
	if fault = r.faults[r.writes]; fault == "" {
		return "", false
	}
	r.hit++
	r.dead = fault.Kills()
	return fault, false
}

// target is what a request is about.
type target struct {
	namespace, resource    string
	watches, lists, writes bool
}

// targetOf reads the path of a request: /api/v1/... or /apis/GROUP/VERSION/..., and
// then [namespaces/NAMESPACE/]RESOURCE[/NAME[/SUBRESOURCE]].
func targetOf(request *http.Request) target {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	prefix := 2
	if parts[0] == "apis" {
		prefix = 3
	}
	if len(parts) <= prefix {
		return target{} // Discovery.
	}
	var t target
	parts = parts[prefix:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		t.namespace, parts = parts[1], parts[2:]
	}
	t.resource = parts[0]
	read := request.Method == http.MethodGet
	t.writes = !read
	t.watches = read && request.URL.Query().Get("watch") == "true"
	t.lists = read && !t.watches && len(parts) == 1
	return t
}

// A RequestFault is what happens to one request.
type RequestFault string

// The faults of requests. Those of a process that dies end it for the namespace: no
// later request of this transport reaches the API server.
const (
	AnswerLost   RequestFault = "answer-lost"  // The request takes effect.
	NotSent      RequestFault = "not-sent"     // It does not.
	Conflict     RequestFault = "409"          // It does not, nor do the following ones.
	TooMany      RequestFault = "429"          // With Retry-After: 1.
	Internal     RequestFault = "500"          //
	Unavailable  RequestFault = "503"          //
	TimedOut     RequestFault = "504"          // The request takes effect, as it may.
	NoAnswer     RequestFault = "no-answer"    // It takes effect, and its answer never comes.
	DiesBefore   RequestFault = "dies-before"  //
	DiesAfter    RequestFault = "dies-after"   // The request takes effect.
	InternalDone RequestFault = "500-but-done" // The request takes effect.
)

// RequestFaults are all of them.
var RequestFaults = []RequestFault{
	AnswerLost, NotSent, Conflict, TooMany, Internal, Unavailable, TimedOut, NoAnswer, DiesBefore, DiesAfter, InternalDone,
}

// Kills tells whether the process dies of the fault.
func (f RequestFault) Kills() bool { return f == DiesBefore || f == DiesAfter }

// TakesEffect tells whether the request takes effect, though its client is not told.
func (f RequestFault) TakesEffect() bool {
	switch f {
	case AnswerLost, NoAnswer, DiesAfter:
		return true
	}
	return statuses[f].done
}

// statuses are the API server's answers for faults: code, reason, and whether the request
// takes effect all the same.
var statuses = map[RequestFault]struct {
	code   int
	reason string
	done   bool
}{
	Conflict:     {http.StatusConflict, "Conflict", false},
	TooMany:      {http.StatusTooManyRequests, "TooManyRequests", false},
	Internal:     {http.StatusInternalServerError, "InternalError", false},
	InternalDone: {http.StatusInternalServerError, "InternalError", true},
	Unavailable:  {http.StatusServiceUnavailable, "ServiceUnavailable", false},
	TimedOut:     {http.StatusGatewayTimeout, "Timeout", true},
}

// do does to a request what the fault says.
func (f RequestFault) do(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	status, answers := statuses[f]
	if f.TakesEffect() {
		answer, err := next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	} else if request.Body != nil {
		_ = request.Body.Close()
	}
	switch {
	case answers:
		return statusAnswer(request, status.code, status.reason), nil
	case f == NoAnswer:
		<-request.Context().Done()
		return nil, request.Context().Err()
	case f.Kills():
		return nil, errDied
	}
	return nil, errLost
}

// statusAnswer is an answer with a Status in it, as the API server writes it.
func statusAnswer(request *http.Request, code int, reason string) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"a fault of the test","reason":%q,"code":%d}`, reason, code)
	header := http.Header{"Content-Type": {"application/json"}}
	if code == http.StatusTooManyRequests {
		header.Set("Retry-After", "1")
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewBufferString(body)), ContentLength: int64(len(body)), Request: request,
	}
}
