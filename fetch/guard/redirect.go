// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

// maxRedirects is how many redirects one request follows.
const maxRedirects = 10

// redirects is true for the statuses whose Location header is followed.
func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow returns where a redirect leads to, or why it is not followed: to another scheme than https://, unless both
// are http:// and plain is true.
func follow(from *url.URL, location string, plain bool) (*url.URL, error) {
	to, err := from.Parse(location)
	if err != nil || to.Opaque != "" {
		return nil, failure.New(failure.Refused, "%s redirects to something that is no URL: use the URL that has the model", Show(from))
	}
	if to.User != nil {
		return nil, failure.New(failure.Refused, "%s redirects to a URL with a user name: use the URL that has the model", Show(from))
	}
	to.Fragment, to.RawFragment = "", ""
	to.Scheme = strings.ToLower(to.Scheme)
	if to.Scheme == "https" || to.Scheme == "http" && plain && from.Scheme == "http" {
		return to, nil
	}
	return nil, failure.New(failure.Refused, "%s redirects to %s, which is less safe: use an https:// URL that stays with https://", Show(from), Show(to))
}

// checkURL checks a URL that is about to be requested, by mirrors or not.
func checkURL(target *url.URL, plain, redirected bool) error {
	switch {
	case target.Scheme == "http" && !plain:
		return failure.New(failure.Refused, "%s is not encrypted: use https://, or set spec.model.sha256 where the source is https://, http:// or s3://", Show(target))
	case target.Scheme != "http" && target.Scheme != "https":
		return failure.New(failure.Refused, "%s is neither an https:// nor an http:// URL", Show(target))
	case target.User != nil:
		return failure.New(failure.Invalid, "%s has a user name: put it into the Secret of spec.model.credentials", Show(target))
	}
	return CheckHost(target, redirected)
}

// sameServer is true if two URLs have the same scheme, host and port.
func sameServer(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(target *url.URL) string {
	if given := target.Port(); given != "" {
		return given
	}
	return map[string]string{"https": "443", "http": "80"}[target.Scheme]
}
