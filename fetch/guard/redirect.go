// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

// redirect decides whether a redirect is followed, and where it leads to by the mirrors: never to another scheme than https://, unless both
// are http:// and that is allowed.
func (c *Client) redirect(request *http.Request, via []*http.Request) error {
	what, from, to := trustOf(request.Context()), via[len(via)-1].URL, request.URL
	if what.agent || via[0].Method != http.MethodGet || what.signed && request.Response.Header.Get("X-Amz-Bucket-Region") != "" { // Which says where the bucket is.
		return http.ErrUseLastResponse
	}
	if err := mayLead(from, to); err != nil {
		return err
	}
	to.RawQuery = strings.ReplaceAll(to.RawQuery, " ", "%20")
	to, err := c.Mirrors.URL(to)
	if err == nil {
		to, err = checkURL(to, what.plain)
	}
	if err != nil {
		return err
	}
	request.URL, request.Host = to, ""
	request.Header.Del("Referer")
	if what.signed || server(to) != what.first {
		maps.DeleteFunc(request.Header, func(name string, _ []string) bool { return !slices.Contains(forAll, name) })
	}
	if len(via) > maxRedirects {
		return failure.New(failure.Refused, "there are more than %d redirects, the last of them to %s: use the URL that has the model", maxRedirects, showServer(to))
	}
	return nil
}

// mayLead returns an error if a redirect may not be followed, whatever the mirrors make of it.
func mayLead(from, to *url.URL) error {
	switch {
	case to.Opaque != "":
		return failure.New(failure.Refused, "%s redirects to something that is no URL: use the URL that has the model", showServer(from))
	case to.User != nil:
		return failure.New(failure.Refused, "%s redirects to a URL with a user name: use the URL that has the model", showServer(from))
	case to.Scheme != "https" && (to.Scheme != "http" || from.Scheme != "http"):
		return failure.New(failure.Refused, "%s redirects to %s, which is less safe: use an https:// URL that stays with https://", showServer(from), showServer(to))
	}
	return nil
}

// forAll are the headers that go to every server on the way.
var forAll = []string{"Accept-Encoding", "If-Match", "If-Range", "Range", "User-Agent"}
