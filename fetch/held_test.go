// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
)

// After [RateLimited], the container is started again and again. No start sends a request before the
// time that the server has named, whenever it is: only a time that cannot be right is not believed.
func TestAStartAfterRateLimited(t *testing.T) {
	const hour = time.Hour
	weights := []byte("weights")
	other := []string{"--uri", "http://other.test/weights.bin"}
	for name, each := range map[string]struct {
		after string
		// starts is how long after the failure the container starts again, and asks how long after it
		// it sends its first request.
		starts, asks time.Duration
		args         []string
		token        string
		state        func(now time.Time) string
	}{
		"before the time":         {after: "2000", starts: 10 * time.Second, asks: 2000 * time.Second},
		"shortly before":          {after: "2000", starts: 1999 * time.Second, asks: 2000 * time.Second},
		"at the time":             {after: "2000", starts: 2000 * time.Second, asks: 2000 * time.Second},
		"after the time":          {after: "2000", starts: 3000 * time.Second, asks: 3000 * time.Second},
		"a time that is far":      {after: "99999", starts: 10 * time.Second, asks: hour},
		"another server":          {after: "2000", args: other},
		"another model":           {after: "2000", args: []string{"--uri", "http://a.test/other.bin"}},
		"with a token since":      {after: "2000", token: "x"},
		"the clock was set back":  {after: "2000", state: func(now time.Time) string { return held(now.Add(24 * hour)) }},
		"it was set back less":    {after: "2000", asks: hour, state: func(now time.Time) string { return held(now.Add(hour)) }},
		"it was set forward":      {after: "2000", state: func(now time.Time) string { return held(now.Add(-24 * hour)) }},
		"a record of no time":     {after: "2000", state: func(time.Time) string { return `{"kept":{},"held":{"a.test/weights.bin":"x"}}` }},
		"a record of a release":   {after: "2000", state: func(time.Time) string { return `{"weights.bin":{"size":7}}` }},
		"a record that is cut":    {after: "2000", state: func(time.Time) string { return `{"kept":{},"held":{"a.te` }},
		"a record that is a list": {after: "2000", state: func(time.Time) string { return `[1]` }},
		"an empty record":         {after: "2000", state: func(time.Time) string { return `` }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				volume, asked := t.TempDir(), []time.Time{}
				limited := func(w http.ResponseWriter, _ *http.Request) {
					if asked = append(asked, time.Now()); len(asked) == 1 {
						w.Header().Set("Retry-After", each.after)
						w.WriteHeader(http.StatusTooManyRequests)
						return
					}
					_, _ = w.Write(weights)
				}
				start := func(token string, args ...string) error {
					getenv := func(name string) string { return map[string]string{"HF_TOKEN": token}[name] }
					args = append([]string{"--uri", "http://a.test/weights.bin", "--sha256", sum(weights), "--volume", volume, "--directory", "model", "--size-limit", "1000000"}, args...)
					flags, err := parse(args)
					if err == nil {
						_, err = fetch(t.Context(), flags, getenv, report.NewLog(io.Discard), inMemory(limited))
					}
					return err
				}
				if err := start(""); err == nil || failure.Of(err).Word != failure.RateLimited || len(leftovers(t, volume)) != 1 {
					t.Fatal(err, leftovers(t, volume))
				}
				failed := time.Now()
				if each.state != nil {
					if err := os.WriteFile(filepath.Join(volume, leftovers(t, volume)[0], "state"), []byte(each.state(failed)), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(each.starts) // The time of the bubble.
				if err := start(each.token, each.args...); err != nil {
					t.Fatal(err)
				}
				if after := asked[1].Sub(failed); len(asked) != 2 || after != each.asks {
					t.Errorf("%d requests, the second one after %s, want %s", len(asked), after, each.asks)
				}
				if got, err := os.ReadDir(filepath.Join(volume, "model")); err != nil || len(got) != 1 || len(leftovers(t, volume)) > 0 {
					t.Error(got, err, leftovers(t, volume))
				}
			})
		})
	}
}

func held(until time.Time) string {
	return `{"kept":{},"held":{"a.test/weights.bin":"` + until.Format(time.RFC3339Nano) + `"}}`
}

// inMemory connects to a handler, whatever the address is: time passes at once in a bubble of
// testing/synctest.
func inMemory(handler http.HandlerFunc) guard.Options {
	return guard.Options{Proxy: http.ProxyURL(nil), Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() { _ = http.Serve(&single{connection: server}, handler) }()
		return client, nil
	}}
}

// single is a listener that has one connection.
type single struct {
	connection net.Conn
}

func (s *single) Accept() (net.Conn, error) {
	if s.connection == nil {
		return nil, net.ErrClosed
	}
	defer func() { s.connection = nil }()
	return s.connection, nil
}

func (s *single) Close() error   { return nil }
func (s *single) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
