// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// firstPause and longestPause are the time between two attempts at a write that the API server has
// refused. It doubles, and differs by at most a tenth.
const firstPause, longestPause = 2 * time.Second, 5 * time.Minute

// RefusedError reports that a write was not sent, because the API server has refused the same one
// and neither its owner nor the object that it is for has changed since.
type RefusedError struct {
	// Again is the time until the next attempt.
	Again time.Duration

	error
}

// Unwrap returns the error in the API server's response.
func (e *RefusedError) Unwrap() error { return e.error }

// refusals are the writes for an owner that the API server has refused, by the object that they are
// for. So the event of a status which quotes a refusal does not repeat the write.
type refusals map[string]*refusal

type refusal struct {
	// version is that of the object.
	version string
	err     error
	pause   time.Duration
	next    time.Time
}

// end returns when the last of them has no meaning any more.
func (r refusals) end() (end time.Time) {
	for _, one := range r {
		end = later(end, one.next.Add(longestPause))
	}
	return end
}

// unlessRefused sends a write of an object that has a version, unless it was refused a short time
// ago.
func (o *Owner) unlessRefused(object, version string, send func() error) error {
	if err := o.refused(object, version); err != nil {
		return err
	}
	err := send()
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	b := o.bucket(now)
	if !isRefusal(err) {
		delete(b.refusals, object)
		return err
	}
	pause := firstPause
	if last := b.refusals[object]; last != nil && last.version == version && now.Sub(last.next) < longestPause {
		pause = min(2*last.pause, longestPause)
	}
	if b.refusals == nil {
		b.refusals = refusals{}
	}
	b.refusals[object] = &refusal{version: version, err: err, pause: pause, next: now.Add(wait.Jitter(pause*9/10, 2.0/9))}
	return err
}

// refused returns a *RefusedError if a write is not to be repeated now.
func (o *Owner) refused(object, version string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	last := o.bucket(now).refusals[object]
	if last == nil || last.version != version || !now.Before(last.next) || last.next.Sub(now) > 2*longestPause {
		return nil
	}
	return &RefusedError{Again: last.next.Sub(now), error: last.err}
}

// versionOf returns what changes when the spec of an object does: its generation, or, of a kind
// that has none, its version.
func versionOf(obj client.Object) string {
	if generation := obj.GetGeneration(); generation > 0 {
		return fmt.Sprintf("%s %d", obj.GetUID(), generation)
	}
	return fmt.Sprintf("%s %s", obj.GetUID(), obj.GetResourceVersion())
}

// isRefusal reports whether an error says that the API server has refused a write.
func isRefusal(err error) bool {
	_, contested := errors.AsType[*ContestedError](err)
	return err != nil && !contested && !IsTransient(err) && !apierrors.IsNotFound(err)
}

// IsTransient reports whether the error is one of the network, or a response that a retry may
// change. It goes by the code: the responses of a proxy or a load balancer have no reason, nor have
// some of the API server, such as the 500 for a list with the same key twice, which stays.
func IsTransient(err error) bool {
	var response apierrors.APIStatus
	if !errors.As(err, &response) {
		return true
	}
	switch response.Status().Code {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true // A conflict is also a child that exists already.
	}
	return apierrors.IsServerTimeout(err)
}
