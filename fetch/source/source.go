// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package source turns spec.model.uri into the files to fetch: what their URLs, names and hashes are, and which credentials
// their server gets.
package source

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/modelbox-operator/modelbox-operator/fetch/download"
	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
	"github.com/modelbox-operator/modelbox-operator/fetch/guard"
	"github.com/modelbox-operator/modelbox-operator/fetch/place"
	"github.com/modelbox-operator/modelbox-operator/fetch/report"
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

// lister is what decides which server a list is from.
func (s Settings) lister() string {
	if strings.HasPrefix(strings.ToLower(s.URI), "s3://") {
		return "AWS_ENDPOINT_URL"
	}
	return "HF_ENDPOINT and the mirrors"
}

func (s Settings) hash() download.Hash {
	return download.Hash{Name: "sha256", Field: "spec.model.sha256", Want: strings.ToLower(s.SHA256)}
}

// web returns the one file of an https:// or http:// URL.
func (s Settings) web(uri modeluri.URI) (Model, error) {
	authorization, err := s.authorization()
	item := download.Item{Request: guard.Request{URL: uri.URL, Plain: s.SHA256 != "", Authorization: authorization}, Size: -1, Hash: s.hash(), Explain: explainWeb}
	return one(uri.File, item), err
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

const (
	// maxListed is how many entries a list may have for each file that a model may have.
	maxListed = 10
	// maxNames bounds the names of the files in bytes, because all of them are held: 80 for each of 100,000 files.
	maxNames = 8 << 20
	// fewer is the way out where a model has too much.
	fewer = "name a folder of it in the URI, or select files by spec.model.include and spec.model.exclude"
)

// listing collects the files of a list that a server sends and the patterns select, within the bounds of what is held.
type listing struct {
	settings  Settings
	selection modeluri.Selection
	files     []File
	empty     []string
	// pages and entries are how many came, and names is how many bytes the names of the files have.
	pages, entries, names int
}

// collect returns the files of a list, of which next adds a page, and says whether there are more. empty is the error without any file.
func (s Settings) collect(empty string, next func(*listing) (bool, error)) (Model, error) {
	selection, err := modeluri.ParseSelection(s.Include, s.Exclude)
	if err != nil {
		return Model{}, failure.New(failure.Invalid, "spec.model.%w", err)
	}
	list := &listing{settings: s, selection: selection}
	for more := true; more; {
		if list.pages++; list.pages > s.MaxFiles+maxListed {
			return Model{}, failure.New(failure.Refused, "the model has a list without an end: check spec.model.uri")
		}
		if more, err = next(list); err != nil {
			return Model{}, err
		}
	}
	return list.model(empty)
}

// entry counts an entry of the list.
func (l *listing) entry() error {
	if l.entries++; l.entries/maxListed >= l.settings.MaxFiles {
		return failure.New(failure.TooBig, "the list has more than %d entries: check %s", l.settings.MaxFiles*maxListed, l.settings.lister())
	}
	return nil
}

// add adds a file that is selected.
func (l *listing) add(file File) error {
	if len(l.files) == l.settings.MaxFiles {
		return failure.New(failure.TooBig, "the model has more than %d files: %s", l.settings.MaxFiles, fewer)
	}
	l.files = append(l.files, file)
	return l.name(file.Name)
}

// directory adds a directory, which may be empty, if files in it are selected.
func (l *listing) directory(name string) error {
	if name == "" || !l.selection.Selects(name+"/") {
		return nil
	}
	if l.empty = append(l.empty, name); len(l.empty) > l.settings.MaxFiles {
		return failure.New(failure.TooBig, "the model has more than %d directories: %s", l.settings.MaxFiles, fewer)
	}
	return l.name(name)
}

// name checks the name of a file or a directory.
func (l *listing) name(name string) error {
	if clean, err := modeluri.Clean(name); err != nil || clean != name || clean == "." {
		return failure.New(failure.Refused, "the list has a file that cannot be stored: %s: leave it out by spec.model.exclude, or check %s", name, l.settings.lister())
	}
	if l.names += len(name); l.names > maxNames {
		return failure.New(failure.TooBig, "the names of the model's files have more than %s: %s", report.Bytes(maxNames), fewer)
	}
	return nil
}

// directories returns those of the files, and those that may be empty.
func (l *listing) directories() map[string]bool {
	all := map[string]bool{".": true}
	add := func(name string) {
		for ; !all[name]; name = path.Dir(name) {
			all[name] = true
		}
	}
	for _, name := range l.empty {
		add(name)
	}
	for _, file := range l.files {
		add(path.Dir(file.Name))
	}
	return all
}

// model returns the files of a list that has come to its end, after it has checked what they and their directories need of the volume,
// and that each name stands for one of them. A pattern that no file matched is misspelt, or the model has changed.
func (l *listing) model(empty string) (Model, error) {
	if field, pattern := l.selection.Unmatched(); pattern != "" {
		return Model{}, failure.New(failure.NotFound, "spec.model.%s: %s matches no file of the model: correct it, or remove it", field, pattern)
	}
	if len(l.files) == 0 {
		return Model{}, failure.New(failure.NotFound, "%s", empty)
	}
	slices.SortFunc(l.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	directories := l.directories()
	need := int64(place.Own + place.Block*(len(directories)-1))
	for _, file := range l.files {
		if need += place.InBlocks(min(file.Size, 1<<62)); need > l.settings.SizeLimit {
			return Model{}, failure.New(failure.TooBig, "the model has more than the %s of spec.model.sizeLimit, with its directories, and in blocks of 4 KiB: raise it, %s",
				report.Bytes(l.settings.SizeLimit), fewer)
		}
	}
	if len(directories) > l.settings.MaxFiles+1 {
		return Model{}, failure.New(failure.TooBig, "the model has more than %d directories: %s", l.settings.MaxFiles, fewer)
	}
	for i, file := range l.files {
		if directories[file.Name] || i > 0 && file.Name == l.files[i-1].Name {
			return Model{}, failure.New(failure.Refused, "the model has %s twice, as a file or as a directory: leave one out by spec.model.exclude, or check %s",
				file.Name, l.settings.lister())
		}
	}
	return Model{Files: l.files, Directories: l.empty}, nil
}
