// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// askEvery is how often a process is asked whether it is ready.
const askEvery = 100 * time.Millisecond

// awaitReady returns when the process answers 200 on /readyz. It fails when
// the process ends first, and after a minute.
func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("the %s is not ready after %s", s.Name(), readyWithin))
	defer cancel()
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.Done():
			return s.unexpected()
		case <-ticker.C:
		}
		if s.ready(ctx) {
			return nil
		}
	}
}

func (s *Server) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Probes+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// unexpected is the error of a process that ended while it was needed.
func (s *Server) unexpected() error {
	if err := s.Err(); err != nil {
		return err
	}
	return errors.New(s.Name() + " ended without being told to")
}

// stop ends the process. One that has ended already was reported by then.
func (s *Server) stop() error {
	select {
	case <-s.Done():
		return nil
	default:
		return s.Stop(endWithin)
	}
}
