// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/base64"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// web returns the one file of an https:// or http:// URL.
func (s Settings) web(uri modeluri.URI) (Model, error) {
	authorization, err := s.authorization()
	item := download.Item{Request: guard.Request{URL: uri.URL, Plain: s.SHA256 != "", Authorization: authorization}, Size: -1, Hash: s.hash(), Explain: explainWeb}
	return one(uri.File, item), err
}

func (s Settings) hash() download.Hash {
	return download.Hash{Name: "sha256", Field: "spec.model.sha256", Want: strings.ToLower(s.SHA256)}
}

// authorization returns the header of that name from the credentials of the environment; empty is none.
func (s Settings) authorization() (string, error) {
	token, user, password := s.Getenv("MODEL_TOKEN"), s.Getenv("MODEL_USERNAME"), s.Getenv("MODEL_PASSWORD")
	switch {
	case token != "" && user != "":
		return "", failure.New(failure.Invalid, "the Secret of spec.model.credentials has MODEL_TOKEN and MODEL_USERNAME: remove one of them")
	case user == "" && password != "":
		return "", failure.New(failure.Invalid, "the Secret of spec.model.credentials has MODEL_PASSWORD without MODEL_USERNAME: add it")
	case user != "":
		basic := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
		s.Hide(basic)
		return "Basic " + basic, nil
	}
	return bearer(token)
}

// bearer returns the header Authorization of a token; empty is none.
func bearer(token string) (string, error) {
	if token == "" {
		return "", nil
	}
	return "Bearer " + token, checkHeader(token)
}

// checkHeader refuses what no header can have.
func checkHeader(value string) error {
	if strings.ContainsAny(value, "\r\n") {
		return failure.New(failure.Invalid, "a key of the Secret of spec.model.credentials has a line break: write it without (printf, not echo)")
	}
	if !httpguts.ValidHeaderFieldValue(value) {
		return failure.New(failure.Invalid, "a key of the Secret of spec.model.credentials has a control character, which no token has: write it anew")
	}
	return nil
}

func explainWeb(answer *http.Response, _ []byte) (detail, wayOut string) {
	if answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden {
		return "", "set MODEL_TOKEN, or MODEL_USERNAME and MODEL_PASSWORD, in the Secret of spec.model.credentials"
	}
	return "", ""
}
