// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package source turns spec.model.uri into the files to fetch: what their URLs, names and hashes are, and which credentials
// their server gets.
package source

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// File is a file to fetch. A list has many of them: what each is fetched by is made when its turn
// comes.
type File struct {
	// Name is its path below the model's directory.
	Name string
	// Size is the number of bytes that was published; -1 is unknown.
	Size int64
	// Item returns what is fetched. If something of it is there already, the bucket is asked for its
	// checksum.
	Item func(ctx context.Context, there bool) (download.Item, error)
}

// one is the only file of a model.
func one(name string, item download.Item) Model {
	known := func(context.Context, bool) (download.Item, error) { return item, nil }
	return Model{Files: []File{{Name: name, Size: item.Size, Item: known}}, Archives: true}
}

// Model is what a URI stands for.
type Model struct {
	// Files are in the order of their names.
	Files []File
	// Directories are further ones, which may be empty.
	Directories []string
	// Archives is true if a file whose name ends like an archive's is to be unpacked.
	Archives bool
}

// Settings are what a URI is resolved with.
type Settings struct {
	// Argument is the model. Its SizeLimit bounds what a list may have.
	modeluri.Argument
	// Getenv returns the credentials; os.Getenv is one.
	Getenv  func(string) string
	Mirrors guard.Rules
	// MaxFiles bounds the files of a list.
	MaxFiles int
	// Hide gets the secrets that are in no variable, so that no log shows them.
	Hide func(secrets ...string)
}

// Resolve returns the files of a model. For hf:// it asks the hub for the list.
func Resolve(ctx context.Context, s Settings, d *download.Downloader) (Model, error) {
	uri, err := s.parse(s.URI)
	if err != nil {
		return Model{}, err
	}
	switch uri.Scheme {
	case modeluri.S3:
		return s.bucket(ctx, d)
	case modeluri.Hub:
		return s.hub(ctx, d)
	default:
		return s.web(uri)
	}
}

// Identity says, without secrets, what decides the bytes of a model: its hash, or where it comes from after the mirrors.
func (s Settings) Identity() string {
	scheme, _, _ := strings.Cut(s.URI, "://")
	switch {
	case s.SHA256 != "":
		return "sha256:" + strings.ToLower(s.SHA256)
	case strings.EqualFold(scheme, "hf"):
		repository, err := s.parseHub()
		if err != nil {
			return "" // Resolve says why.
		}
		base, err := s.Mirrors.URL(repository.base)
		if err != nil {
			return ""
		}
		return guard.Show(base) + " " + path.Join(repository.Org, repository.Name) + "@" + path.Join(repository.Commit, repository.Path) + s.patterns()
	}
	return fmt.Sprintf("uri:%x", sha256.Sum256([]byte(s.Mirrors.Text(s.URI)+"\x00"+s.Getenv("AWS_ENDPOINT_URL")+s.patterns())))
}

// patterns says which files are selected; empty is all.
func (s Settings) patterns() string {
	if len(s.Include)+len(s.Exclude) == 0 {
		return ""
	}
	return fmt.Sprintf(" %q %q", s.Include, s.Exclude)
}

// sha256Text is how a hash is written.
var sha256Text = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)

// parse reads a URI: that of the spec, or what a mirror makes of it.
func (s Settings) parse(text string) (modeluri.URI, error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return modeluri.URI{}, failure.New(failure.Invalid, "spec.model.uri has no scheme: begin it with https://, http://, s3:// or hf://")
	}
	uri, err := modeluri.Parse(strings.ToLower(scheme) + "://" + rest)
	if err == nil {
		return uri, s.checkHash(uri)
	}
	if _, ok := errors.AsType[*modeluri.AddressError](err); ok {
		return uri, failure.New(failure.Refused, "%w", err)
	}
	if uri.Scheme == "oci" || uri.Scheme == "pvc" {
		return uri, failure.New(failure.Invalid, "%s:// is mounted and never fetched: this container is not needed for it", uri.Scheme)
	}
	return uri, failure.New(failure.Invalid, "spec.model.uri: %w", err)
}

// checkHash returns what is wrong with the hash of a URI.
func (s Settings) checkHash(uri modeluri.URI) error {
	several := uri.Scheme == modeluri.Hub || uri.Scheme == modeluri.S3 && uri.File == ""
	switch {
	case s.SHA256 != "" && !sha256Text.MatchString(s.SHA256):
		return failure.New(failure.Invalid, "spec.model.sha256 is no SHA-256: write it as 64 hexadecimal digits")
	case uri.Scheme == modeluri.HTTP && s.SHA256 == "":
		return failure.New(failure.Invalid, "http:// needs spec.model.sha256, because nothing else protects what is fetched: set it, or use https://")
	case several && s.SHA256 != "":
		return failure.New(failure.Invalid, "hf:// and a folder of s3:// have several files, which published hashes verify: remove spec.model.sha256")
	case !several && len(s.Include)+len(s.Exclude) > 0:
		return failure.New(failure.Invalid, "spec.model.include and spec.model.exclude select files of hf:// and of a folder of s3://, and %s:// is one file: remove them", uri.Scheme)
	}
	return nil
}
