// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package source turns spec.model.uri into the files to fetch: what their URLs, names and hashes are, and which credentials
// their server gets.
package source

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/filename"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/mirror"
)

// File is a file to fetch.
type File struct {
	download.Item
	// Name is its path below the model's directory.
	Name string
}

// Model is what a URI stands for.
type Model struct {
	Files []File
	// Archives is true if a file whose name ends like an archive's is to be unpacked.
	Archives bool
}

// Settings are what a URI is resolved with.
type Settings struct {
	URI string
	// SHA256 is that of the fetched file in hexadecimal digits; empty verifies nothing.
	SHA256 string
	// Getenv returns the credentials; os.Getenv is one.
	Getenv  func(string) string
	Mirrors mirror.Rules
	// MaxFiles and MaxBytes bound what a hub's model may have.
	MaxFiles int
	MaxBytes int64
}

// Resolve returns the files of a model. For hf:// it asks the hub for the list.
func Resolve(ctx context.Context, s Settings, d *download.Downloader) (Model, error) {
	scheme, err := s.check()
	if err != nil {
		return Model{}, err
	}
	switch scheme {
	case "https", "http":
		return s.web()
	case "s3":
		return s.bucket()
	default:
		return s.hub(ctx, d)
	}
}

// sha256 is how a hash is written.
var sha256 = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// check returns the URI's scheme, or what is wrong with the settings alone.
func (s Settings) check() (string, error) {
	scheme, _, found := strings.Cut(s.URI, "://")
	scheme = strings.ToLower(scheme)
	switch {
	case !found:
		return "", failure.New(failure.Invalid, "spec.model.uri has no scheme: begin it with https://, http://, s3:// or hf://")
	case s.SHA256 != "" && !sha256.MatchString(s.SHA256):
		return "", failure.New(failure.Invalid, "spec.model.sha256 is no SHA-256: write it as 64 hexadecimal digits")
	case scheme == "http" && s.SHA256 == "":
		return "", failure.New(failure.Invalid, "http:// needs spec.model.sha256, because nothing else protects what is fetched: set it, or use https://")
	case scheme == "hf" && s.SHA256 != "":
		return "", failure.New(failure.Invalid, "hf:// has several files, which the hub's own hashes verify: remove spec.model.sha256")
	}
	switch scheme {
	case "https", "http", "s3", "hf":
		return scheme, nil
	case "oci", "pvc":
		return "", failure.New(failure.Invalid, "%s:// is mounted and never fetched: this container is not needed for it", scheme)
	}
	return "", failure.New(failure.Invalid, "the scheme %s:// is unknown: use https://, http://, s3:// or hf://", failure.Quote(scheme))
}

func (s Settings) hash() download.Hash {
	return download.Hash{Name: "sha256", Field: "spec.model.sha256", Want: strings.ToLower(s.SHA256)}
}

// web returns the one file of an https:// or http:// URL.
func (s Settings) web() (Model, error) {
	target, err := url.Parse(s.URI)
	switch {
	case err != nil || target.Opaque != "" || target.Hostname() == "":
		return Model{}, failure.New(failure.Invalid, "spec.model.uri is not a URL: write https://host/path, with %%25 for a per cent sign")
	case target.User != nil:
		return Model{}, failure.New(failure.Invalid, "spec.model.uri has a user name, which everyone who reads the object sees: "+
			"put it into the Secret of spec.model.credentials as MODEL_USERNAME and MODEL_PASSWORD")
	case target.Fragment != "":
		return Model{}, failure.New(failure.Invalid, "spec.model.uri has a fragment, which no server gets: remove it, or write # as %%23")
	}
	name, err := lastSegment(target.Path)
	if err != nil {
		return Model{}, err
	}
	sign, err := s.authorization()
	item := download.Item{Request: guard.Request{URL: target, Plain: s.SHA256 != "", Sign: sign}, Size: -1, Hash: s.hash(), Explain: explainWeb}
	return Model{Files: []File{{Item: item, Name: name}}, Archives: true}, err
}

// lastSegment returns the name that a file gets from the path of its URL.
func lastSegment(path string) (string, error) {
	name, err := filename.Single(path[strings.LastIndex(path, "/")+1:])
	if err != nil {
		return "", failure.New(failure.Invalid, "spec.model.uri names no file (%w): end it with the file's name", err)
	}
	return name, nil
}

// authorization returns how requests get the credentials of the environment; nil is not at all.
func (s Settings) authorization() (func(*http.Request) error, error) {
	token, user, password := s.Getenv("MODEL_TOKEN"), s.Getenv("MODEL_USERNAME"), s.Getenv("MODEL_PASSWORD")
	switch {
	case token != "" && user != "":
		return nil, failure.New(failure.Invalid, "the Secret of spec.model.credentials has MODEL_TOKEN and MODEL_USERNAME: remove one of them")
	case user == "" && password != "":
		return nil, failure.New(failure.Invalid, "the Secret of spec.model.credentials has MODEL_PASSWORD without MODEL_USERNAME: add it")
	case token != "":
		return header("Bearer " + token)
	case user != "":
		return header("Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	}
	return nil, nil
}

// header returns a function that sets the header Authorization.
func header(value string) (func(*http.Request) error, error) {
	if strings.ContainsAny(value, "\r\n\x00") {
		return nil, failure.New(failure.Invalid, "a key of the Secret of spec.model.credentials has a line break: write it without (printf, not echo)")
	}
	return func(request *http.Request) error {
		request.Header.Set("Authorization", value)
		return nil
	}, nil
}

func explainWeb(answer download.Answer) (detail, wayOut string) {
	if answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden {
		return "", "set MODEL_TOKEN, or MODEL_USERNAME and MODEL_PASSWORD, in the Secret of spec.model.credentials"
	}
	return "", ""
}
