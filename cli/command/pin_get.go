// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// get returns the answer to a request, with the token that the environment has by a name. A
// redirect to another host gets no token.
func (o *pinOptions) get(ctx context.Context, target, token string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil) //nolint:gosec // The user names the server.
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", "identity") // The bytes as they are, which the fetch hashes.
	if value := os.Getenv(token); value != "" {
		request.Header.Set("Authorization", "Bearer "+value)
	}
	for begin := time.Now(); ; {
		response, err := cmp.Or(o.HTTP, http.DefaultClient).Do(request) //nolint:gosec // The user names the server.
		if err != nil || response.StatusCode == http.StatusOK {
			return response, err
		}
		_ = response.Body.Close() // What it has does not matter.
		wait, later := later(response)
		if !later || time.Since(begin)+wait > waitFor {
			return nil, refusal(response, token, time.Now().Add(wait))
		}
		fmt.Fprintf(o.ErrOut, "%s answers %s; the next request is in %s\n", request.URL.Host, response.Status, wait.Round(time.Second))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// later returns how long a server wants to be left alone, and whether it has answered enough for
// now.
func later(response *http.Response) (wait time.Duration, later bool) {
	wait = modeluri.Later(response.Header, time.Now())
	later = response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable && wait > 0
	return max(wait, time.Second), later
}

// waitFor is how long requests to a server wait that has answered enough for now.
const waitFor = 30 * time.Minute

// refusal returns why a server does not answer, and what to do. next is when it may.
func refusal(response *http.Response, token string, next time.Time) error {
	wayOut := "a private model needs " + token + " in the environment"
	switch code := response.StatusCode; {
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		wayOut = "[RateLimited] the next request is of use at " + next.UTC().Format(time.RFC3339)
	case response.Header.Get("X-Error-Code") == "RevisionNotFound":
		wayOut = "the model has no such branch, tag or commit"
	}
	return fmt.Errorf("%s answers %s; %s", response.Request.URL.Host, response.Status, wayOut)
}
