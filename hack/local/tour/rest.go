// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tour

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// quietPeriod is how long the controller must send no requests to be considered idle.
const quietPeriod = 5 * time.Second

func (t *Tour) rest(ctx context.Context) error {
	if output, err := t.quietly(ctx, "", "wait", "--for=condition=Ready", "--timeout=60s", "modelbox,happ,gd,xud", "--all"); err != nil {
		return fmt.Errorf("waiting for all objects to be Ready: %s: %w", output, err)
	}
	if _, err := t.kubectl(ctx, "get", "mbo"); err != nil {
		return err
	}
	var mark int
	var since time.Time
	if err := t.until(ctx, "the controller to send no requests", func(context.Context) (string, bool) {
		seen, err := t.countRequests()
		if err != nil {
			return err.Error(), false
		}
		if seen != mark || since.IsZero() {
			mark, since = seen, time.Now()
		}
		return "", time.Since(since) >= quietPeriod
	}); err != nil {
		return err
	}
	return t.check(true, "for %s the controller sent no requests to the API server except for its lease and its watches", quietPeriod)
}

// countRequests counts the controller's requests so far, except for its lease and its
// watches.
func (t *Tour) countRequests() (int, error) {
	file, err := os.Open(t.AuditLog)
	if err != nil {
		return 0, fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	count := 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb, UserAgent string
			ObjectRef       struct{ Resource string }
		}
		// The last line may be incomplete.
		if json.Unmarshal(lines.Bytes(), &event) == nil && strings.HasPrefix(event.UserAgent, "controller/") &&
			event.Verb != "watch" && event.ObjectRef.Resource != "leases" {
			count++
		}
	}
	return count, lines.Err()
}
