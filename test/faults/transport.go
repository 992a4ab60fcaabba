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

// errDied is the error of all requests of a process after its simulated crash.
var errDied = errors.New("the process died")

// errLost is the error of a client whose response was lost.
var errLost = fmt.Errorf("reading the answer: %w", io.ErrUnexpectedEOF)

// Transport is the transport between one controller process and the API server. Requests
// get the faults that are planned for their namespace. Watches can be delayed, ended, and
// started from an old list. Use it with rest.Config.Wrap.
type Transport struct {
	mu      sync.Mutex
	planned map[string]*requests
	// gates holds a gate for each resource, which is shut while its watch events are
	// delayed.
	gates map[string]*gate
	// old holds the version that the next list of a resource returns.
	old map[string]*oldList
	// streams are the open watches.
	streams map[*stream]struct{}
}

// requests holds the planned faults for the writes of a namespace, and the number of
// writes.
type requests struct {
	faults map[int]RequestFault
	writes int
	hit    int
	dead   bool
}

// NewTransport returns a transport without faults.
func NewTransport() *Transport {
	return &Transport{
		planned: map[string]*requests{}, gates: map[string]*gate{}, old: map[string]*oldList{}, streams: map[*stream]struct{}{},
	}
}

// Wrap is a function for rest.Config.Wrap. Everything that it returns shares this
// transport's state.
func (t *Transport) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) { return t.roundTrip(next, r) })
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Plan sets the faults for the next writes of a namespace, by their number, which starts
// with 1.
func (t *Transport) Plan(namespace string, faults map[int]RequestFault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.planned[namespace] = &requests{faults: faults}
}

// Writes returns the number of writes of a namespace since Plan, and how many of them had
// a fault.
func (t *Transport) Writes(namespace string) (writes, hit int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.planned[namespace]
	return r.writes, r.hit
}

// Dead reports whether the process has crashed for a namespace.
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

// faultOf counts a write and returns its fault.
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

// target is the target of a request.
type target struct {
	namespace, resource    string
	watches, lists, writes bool
}

// targetOf parses the path of a request: /api/v1/... or /apis/GROUP/VERSION/..., and
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

// A RequestFault is a fault of one request.
type RequestFault string

// The faults of requests. After a crash of the process, no later request for the namespace
// reaches the API server.
const (
	AnswerLost   RequestFault = "answer-lost"  // The request takes effect.
	NotSent      RequestFault = "not-sent"     // The request has no effect.
	Conflict     RequestFault = "409"          // The request has no effect, as for the next ones.
	TooMany      RequestFault = "429"          // With Retry-After: 1.
	Internal     RequestFault = "500"          //
	Unavailable  RequestFault = "503"          //
	TimedOut     RequestFault = "504"          // The request takes effect.
	NoAnswer     RequestFault = "no-answer"    // The request takes effect, without a response.
	DiesBefore   RequestFault = "dies-before"  //
	DiesAfter    RequestFault = "dies-after"   // The request takes effect.
	InternalDone RequestFault = "500-but-done" // The request takes effect.
)

// RequestFaults lists all faults.
var RequestFaults = []RequestFault{
	AnswerLost, NotSent, Conflict, TooMany, Internal, Unavailable, TimedOut, NoAnswer, DiesBefore, DiesAfter, InternalDone,
}

// Kills reports whether the fault is a crash of the process.
func (f RequestFault) Kills() bool { return f == DiesBefore || f == DiesAfter }

// TakesEffect reports whether the request takes effect although the client gets an error.
func (f RequestFault) TakesEffect() bool {
	switch f {
	case AnswerLost, NoAnswer, DiesAfter:
		return true
	}
	return statuses[f].done
}

// statuses are the responses of the API server for faults: code, reason, and whether the
// request takes effect.
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

// do applies the fault to a request.
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

// statusAnswer returns a response with a Status, as from the API server.
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
