// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package download

import (
	"errors"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
)

// check refuses an answer that, by its headers, is another file than the one at the URL, or has an end that cannot be told from a cut.
// A hash or a size that was published tells this by itself, and for a bucket an encoding is what the object was stored with.
func (t *transfer) check(response *http.Response) error {
	if t.item.Hash.Want != "" || t.item.Size >= 0 {
		return nil
	}
	shown := guard.Show(t.item.URL)
	encoding := strings.ToLower(response.Header.Get("Content-Encoding"))
	switch {
	case t.item.Open == nil && encoding != "" && encoding != "identity" && !t.isCompressed(encoding):
		return failure.New(failure.Refused, "%s comes with Content-Encoding %s, which was not asked for: let the server send the file as it is, or set spec.model.sha256",
			shown, encoding)
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
	if t.item.Hash.Want != "" || t.item.Size >= 0 {
		return nil
	}
	if t.written == 0 {
		return failure.New(failure.Refused, "%s has 0 bytes: check that it was uploaded, or set spec.model.sha256 if it is empty on purpose", guard.Show(t.item.URL))
	}
	if t.item.Open != nil { // Who signs a request is sent to no login.
		return nil
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
