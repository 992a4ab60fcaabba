// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/aws/smithy-go/encoding/httpbinding"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

const defaultHub = "https://huggingface.co"

// repository is one commit of a model at a hub.
type repository struct {
	modeluri.URI
	base *url.URL
}

// parseHub reads a URI of the hub. A mirror of hf:// is either another hf:// or the hub's endpoint.
func (s Settings) parseHub() (repository, error) {
	uri, endpoint := s.URI, s.Getenv("HF_ENDPOINT")
	if rule, found := s.Mirrors.Match(uri); found && strings.HasPrefix(rule.Replacement, "hf://") {
		uri = s.Mirrors.Text(uri)
	} else if found && endpoint == "" {
		endpoint = rule.Replacement
	}
	base, ok := serverOf(cmp.Or(endpoint, defaultHub))
	if !ok {
		return repository{}, failure.New(failure.Invalid, "HF_ENDPOINT, or the mirror of hf://, is no URL of a server: write https://host")
	}
	parsed, err := s.parse(uri)
	return repository{parsed, base}, err
}

func (r repository) list() *url.URL {
	list := r.url("api", "models", r.Org, r.Name, "tree", r.Commit)
	list.RawQuery = "recursive=true"
	return list
}

func (r repository) url(segments ...string) *url.URL {
	whole := path.Join("/", r.base.Path, path.Join(segments...))
	return &url.URL{Scheme: r.base.Scheme, Host: r.base.Host, Path: whole, RawPath: httpbinding.EscapePath(whole, false)}
}

// hub lists the files of a model.
func (s Settings) hub(ctx context.Context, d *download.Downloader) (Model, error) {
	repository, err := s.parseHub()
	if err != nil {
		return Model{}, err
	}
	authorization, err := bearer(s.Getenv("HF_TOKEN"))
	if err != nil {
		return Model{}, err
	}
	page := repository.list()
	empty := func() string {
		return "the commit has no file at " + path.Join("/", repository.Path) + ": check the end of spec.model.uri"
	}
	return s.collect(empty, func(list *listing) (_ bool, err error) {
		lister := lister{list, repository, authorization}
		page, err = lister.page(ctx, d, page)
		return page != nil, err
	})
}

func explainHub(answer *http.Response, _ []byte) (detail, wayOut string) {
	detail = answer.Header.Get("X-Error-Code")
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return detail, "check the organization and name in spec.model.uri; if the model is private or has terms to accept, accept them and set HF_TOKEN in the Secret of spec.model.credentials"
	case http.StatusNotFound:
		return detail, "check the organization, name and commit in spec.model.uri"
	}
	return detail, ""
}
