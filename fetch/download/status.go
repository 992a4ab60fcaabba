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
	"path"
	"slices"
	"strings"
	"time"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

// maxErrorBody is how many bytes of an error's body are read.
const maxErrorBody = 16 << 10

// Explain returns a detail of an answer that is no success to show after the status, and the way out. body is the beginning of its body.
// Empty texts stand for what the status alone says.
type Explain func(answer *http.Response, body []byte) (detail, wayOut string)

// refusal returns the error for an answer that is no success: temporary for the statuses that may pass.
func refusal(answer *http.Response, target *url.URL, explain Explain, now time.Time) error {
	body, _ := io.ReadAll(io.LimitReader(answer.Body, maxErrorBody))
	var detail, wayOut string
	if explain != nil {
		detail, wayOut = explain(answer, body)
	}
	shown := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	if detail != "" {
		shown += " (" + failure.Quote(detail) + ")"
	}
	if passes(answer.StatusCode) {
		return &temporary{err: fmt.Errorf("%s: %s", shown, guard.Show(target)), after: retryAfter(answer.Header, now)}
	}
	word, usual := final(answer.StatusCode)
	return failure.New(word, "%s: %s: %s", shown, guard.Show(target), cmp.Or(wayOut, usual))
}

// passes is true for the statuses that another attempt may cure.
func passes(status int) bool {
	return status >= 500 || slices.Contains([]int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}, status)
}

func final(status int) (failure.Word, string) {
	switch status {
	case http.StatusNotFound, http.StatusGone:
		return failure.NotFound, "check spec.model.uri"
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return failure.Denied, "check spec.model.uri, and the Secret of spec.model.credentials"
	}
	return failure.Invalid, "check spec.model.uri"
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
	return &temporary{err: fmt.Errorf("%s: %w", guard.Show(target), err)}
}

// check refuses an answer that, by its headers, is another file than the one at the URL, or has an end that cannot be told from a cut.
// A hash tells this by itself.
func (t *transfer) check(response *http.Response) error {
	if t.item.Hash.Want != "" {
		return nil
	}
	shown := guard.Show(t.item.URL)
	encoding := strings.ToLower(response.Header.Get("Content-Encoding"))
	switch {
	case encoding != "" && encoding != "identity" && !t.isCompressed(encoding):
		return failure.New(failure.Refused, "%s comes with Content-Encoding %s, which was not asked for: let the server send the file as it is, or set spec.model.sha256",
			shown, failure.Quote(encoding))
	case response.StatusCode == http.StatusOK && response.ContentLength < 0 && response.ProtoMajor == 1 && len(response.TransferEncoding) == 0:
		return failure.New(failure.Refused, "%s comes without its size, so that its end is the same as a cut: let the server send Content-Length, or set spec.model.sha256", shown)
	}
	return nil
}

// isCompressed is true for the encoding that a file has by its name: some servers name that of .tar.gz.
func (t *transfer) isCompressed(encoding string) bool {
	name := strings.ToLower(t.item.URL.Path)
	return strings.HasSuffix(encoding, "gzip") && (strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".tgz"))
}

// checkContent refuses a complete file that is no model by its content. A hash tells this by itself.
func (t *transfer) checkContent() error {
	if t.item.Hash.Want != "" {
		return nil
	}
	if t.written == 0 && t.item.Size < 0 {
		return failure.New(failure.Refused, "%s has 0 bytes: check that it was uploaded, or set spec.model.sha256 if it is empty on purpose", guard.Show(t.item.URL))
	}
	begin := make([]byte, min(512, t.written))
	if _, err := t.to.ReadAt(begin, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	ending := strings.ToLower(path.Ext(t.item.URL.Path))
	if strings.HasPrefix(http.DetectContentType(begin), "text/html") && ending != ".html" && ending != ".htm" {
		return failure.New(failure.Refused, "%s is a web page, often of a login: use the URL that downloads the file itself, and spec.model.credentials", guard.Show(t.item.URL))
	}
	return nil
}
