// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// maxErrorBody is how many bytes of an error's body are read.
const maxErrorBody = 16 << 10

// Explain returns a detail of an answer that is no success to show after the status, and the way out. body is the beginning of its body.
// Empty texts stand for what the status alone says.
type Explain func(answer *http.Response, body []byte) (detail, wayOut string)

// refusal returns the error for an answer that is no success: temporary for the statuses that may pass.
func refusal(answer *http.Response, item Item) error {
	body, _ := io.ReadAll(io.LimitReader(answer.Body, maxErrorBody))
	var detail, wayOut string
	if item.Explain != nil {
		detail, wayOut = item.Explain(answer, body)
	}
	shown := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	if detail != "" {
		shown += " (" + detail + ")"
	}
	after := modeluri.Later(answer.Header, time.Now())
	limited := answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable && after > 0
	_, throttled := retry.DefaultThrottleErrorCodes[detail] // Those that the SDKs of Amazon send again.
	_, again := retry.DefaultRetryableErrorCodes[detail]
	if again || throttled || passes(answer.StatusCode) {
		return &temporary{fmt.Errorf("%s: %s", shown, guard.Show(item.URL)), after, limited || throttled}
	}
	word, usual := failure.Invalid, "check spec.model.uri"
	switch answer.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		word = failure.NotFound
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		word, usual = failure.Denied, usual+", and the Secret of spec.model.credentials"
	}
	return failure.New(word, "%s: %s: %s", shown, guard.Show(item.URL), cmp.Or(wayOut, usual))
}

// passes is true for the statuses that another attempt may cure.
func passes(status int) bool {
	return status >= 500 || slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}, status)
}

// broken returns the error for a request without an answer, or with a body that broke off: temporary, except where the
// connection was refused by the fetcher itself.
func broken(err error, target *url.URL) error {
	if f, ok := errors.AsType[*failure.Failure](err); ok {
		return f
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return failure.New(failure.Invalid, "%s answers without TLS: use the port that serves https://", guard.Show(target))
	}
	return &temporary{error: fmt.Errorf("%s: %w", guard.Show(target), err)}
}
